#!/usr/bin/env bash
# Prints the Python that runs the tests on a GPU. On a machine that has one, an environment over .venv is made first,
# with ONNX Runtime for GPUs (the version of docker/versions.env) and, where .venv has torch for CPUs, torch for CUDA.
# .venv itself stays as it is: its language model runs on the CPU.
set -euo pipefail
cd "$(dirname "$0")/.."
base=.venv over=.venv-gpu

if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1 && [ -z "${TRITONKIT_GPU_ENVIRONMENT:-}" ]; then
    echo "gpu environment: this machine has no NVIDIA GPU; the tests will say so" >&2
    echo $base/bin/python
    exit 0
fi
wanted=("onnxruntime-gpu==$(sed -n 's/^ONNXRUNTIME_GPU_VERSION=//p' docker/versions.env)")
if [ -z "$($base/bin/python -c 'import torch; print(torch.version.cuda or "")')" ]; then
    wanted+=("$(grep -m 1 '^torch==' requirements/lock.txt)")
fi
stamp="${wanted[*]} $(cat $base/.tritonkit)"
if [ "$(cat $over/.tritonkit 2>/dev/null)" != "$stamp" ]; then
    echo "gpu environment: installing ${wanted[*]} into $over (up to 5 GB)" >&2
    rm -rf $over
    $base/bin/python -m venv $over
    packages=$(echo $over/lib/python3.*/site-packages)
    # Behind the environment's own packages: what is not there is taken from .venv.
    (cd $base/lib/python3.*/site-packages && pwd) > "$packages/base.pth"
    # What they need of other packages is as in .venv.
    grep -vE '^(torch|onnxruntime|nvidia-)' requirements/lock.txt > $over/constraints.txt
    $over/bin/python -m pip --disable-pip-version-check install --ignore-installed --constraint $over/constraints.txt \
        "${wanted[@]}" > $over/install.log 2>&1 || { cat $over/install.log >&2; exit 1; }
    echo "$stamp" > $over/.tritonkit
fi
$over/bin/python - >&2 <<'PY'
import onnxruntime
import torch

found = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU that it can use"
print(f"gpu environment: torch {torch.__version__} (CUDA {torch.version.cuda}): {found}")
print(f"gpu environment: onnxruntime-gpu {onnxruntime.__version__} (CUDA {onnxruntime.cuda_version})")
PY
echo $over/bin/python
