#!/bin/sh
# Asks the gateway with curl, by OpenAI's API: gateway.sh QUESTION RECORDING PHOTO [URL]
set -eu
question=$1 recording=$2 photo=$3 url=${4:-http://127.0.0.1:9000}

# (The question is put into JSON as it is here; one with quotes or backslashes needs escaping.)
curl --silent --show-error --fail-with-body "$url/v1/chat/completions" \
    --json '{"model": "llm", "messages": [{"role": "user", "content": "'"$question"'"}]}'
echo
curl --silent --show-error --fail-with-body "$url/v1/audio/transcriptions" \
    --form file=@"$recording" --form model=transcribe --form response_format=vtt
curl --silent --show-error --fail-with-body "$url/v1/detections" --form file=@"$photo"
echo
