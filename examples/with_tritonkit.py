"""The same calls with tritonkit's client: with_tritonkit.py RECORDING PHOTO QUESTION [URL]"""

import sys

from clients import Delta, Heard, Seen, connect

recording, photo, question = sys.argv[1:4]
url = (sys.argv[4:] or ["grpc://127.0.0.1:8001"])[0]

with connect(url, timeout_s=300) as client:
    print(client.transcribe(recording).text)
    for found in client.detect(photo).items:
        print(found.label, found.score, found.box)
    for event in client.ask(recording, photo, question, max_tokens=100, temperature=0):
        match event:
            case Heard(transcript=transcript):
                print("heard:", transcript)
            case Seen(detections=detections):
                print("seen:", [found.label for found in detections.items])
            case Delta(text=text):
                print(text, end="", flush=True)
print()
