#!/bin/sh
# Calls the pipelines with curl: curl.sh PHOTO QUESTION [URL]
set -eu
photo=$1 question=$2 url=${3:-http://127.0.0.1:8000}

# /infer: a JSON header, then the bytes of the file as they are. The answer is JSON.
size=$(wc -c <"$photo" | tr -d ' ')
header='{"inputs": [{"name": "IMAGE", "datatype": "UINT8", "shape": ['$size'],
                     "parameters": {"binary_data_size": '$size'}}],
         "outputs": [{"name": "DETECTIONS"}]}'
{ printf %s "$header"; cat "$photo"; } |
    curl --silent --show-error --fail-with-body --data-binary @- \
        --header "Content-Type: application/octet-stream" \
        --header "Inference-Header-Content-Length: ${#header}" \
        "$url/v2/models/detect/infer"
echo

# /generate_stream: an event for each piece of the answer, as it comes. Stopping curl stops the steps that have not
# begun; how to stop the language model in the middle of its answer: docs/clients.md, Lifelines.
# (The question is put into JSON as it is here; one with quotes or backslashes needs escaping.)
curl --silent --show-error --fail-with-body --no-buffer \
    --data '{"QUESTION": "'"$question"'", "SAMPLING_PARAMETERS": "{\"max_tokens\": 50}"}' \
    "$url/v2/models/assistant_text/generate_stream"
