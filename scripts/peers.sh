#!/usr/bin/env bash
# Makes .cache/peers/env, the environment of the benchmark's peers, on top of .venv; or leaves it when nothing changed.
set -euo pipefail
cd "$(dirname "$0")/.."
env=.cache/peers/env
wanted=$(cat requirements/peers.txt requirements/lock.txt | sha256sum | cut -d' ' -f1)
if [ "$(cat $env/stamp 2>/dev/null)" != "$wanted" ]; then
    rm -rf $env
    .venv/bin/python -c 'import sys, venv; venv.EnvBuilder(with_pip=True).create(sys.argv[1])' $env
    echo "$PWD/.venv/lib/python3.11/site-packages" > $env/lib/python3.11/site-packages/tritonkit.pth
    $env/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --requirement requirements/peers.txt
    echo "$wanted" > $env/stamp
fi
