#!/usr/bin/env bash
# Makes .cache/collectors/env, the environment of the collectors of traces in requirements/collectors.txt, or leaves it.
set -euo pipefail
cd "$(dirname "$0")/.."
env=.cache/collectors/env
wanted=$(sha256sum < requirements/collectors.txt)
if [ "$(cat $env/stamp 2>/dev/null)" != "$wanted" ]; then
    rm -rf $env
    .venv/bin/python -c 'import sys, venv; venv.EnvBuilder(with_pip=True).create(sys.argv[1])' $env
    $env/bin/python -m pip --disable-pip-version-check --quiet install --requirement requirements/collectors.txt
    chmod +x $env/lib/python*/site-packages/rotel/rotel-agent
    echo "$wanted" > $env/stamp
fi
