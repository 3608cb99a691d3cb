"""Three requests at once with tritonkit's asyncio client: with_asyncio.py RECORDING PHOTO QUESTION [URL]"""

import asyncio
import sys

from clients import AsyncClient, Delta, connect_async

recording, photo, question = sys.argv[1:4]
url = (sys.argv[4:] or ["grpc://127.0.0.1:8001"])[0]


async def answer(client: AsyncClient) -> str:
    events = client.chat(question, max_tokens=50)
    return "".join([event.text async for event in events if isinstance(event, Delta)])


async def main() -> None:
    async with connect_async(url, timeout_s=300) as client:
        transcript, detections, words = await asyncio.gather(
            client.transcribe(recording), client.detect(photo), answer(client)
        )
    print(transcript.text, [found.label for found in detections.items], words, sep="\n")


asyncio.run(main())
