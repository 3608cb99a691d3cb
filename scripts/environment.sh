#!/usr/bin/env bash
# Makes .venv with all that tritonkit needs, or says that it is there already.
# The environment is recognised by content: a hash over the requirement files and pyproject.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/.tritonkit

python_311() {
    for candidate in "${PYTHON:-}" python3.11 python3 python; do
        [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    found=$(python3 --version 2>/dev/null || echo "no python3")
    echo "tritonkit: Python 3.11 is needed (the embedded server's Python stub and the pinned wheels are for it); found: $found. Install python3.11 or run: make PYTHON=/path/to/python3.11 ..." >&2
    exit 1
}

wanted=$(cat requirements/lock.txt requirements/nodeps.txt pyproject.toml | sha256sum | cut -d' ' -f1)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    echo "environment: reused ($venv)"
    exit 0
fi
python=$(python_311)
echo "environment: making $venv with $("$python" --version) (about 4 GB, a minute or two)"
started=$(date +%s)
[ -x $venv/bin/python ] || "$python" -m venv $venv
pip="$venv/bin/python -m pip --disable-pip-version-check"
# setuptools builds openai-whisper below, without isolation: its version is the locked one.
quietly() { "$@" > "$venv/install.log" 2>&1 || { cat "$venv/install.log" >&2; exit 1; }; }
quietly $pip install --requirement requirements/lock.txt
quietly $pip install --no-deps --no-build-isolation --requirement requirements/nodeps.txt
quietly $pip install --no-deps --no-build-isolation --editable .
echo "$wanted" > "$stamp"
echo "environment: ready after $(( $(date +%s) - started )) s"
