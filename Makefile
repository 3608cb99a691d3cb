# tritonkit: `make` alone prints the targets. Every target sets up what it needs first, and does no work twice.
SHELL := /bin/bash
.DEFAULT_GOAL := help
TRITONKIT := .venv/bin/tritonkit
PYTEST := .venv/bin/python -m pytest

# Which checkpoints the shipped pipelines use: a name of `tritonkit weights --list`, a checkpoint file or a folder.
WHISPER ?= tiny.en
YOLO ?= yolov3-tiny
LLM ?= tiny-llama
CHECKPOINTS = --whisper $(WHISPER) --yolo $(YOLO) --llm $(LLM)
# The committed repository is that of the defaults; other checkpoints get one of their own.
OUT ?= $(if $(filter tiny.en/yolov3-tiny/tiny-llama,$(WHISPER)/$(YOLO)/$(LLM)),model_repository,.cache/repository)

help:  ## print this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

install:  ## make the environment (.venv) with all that is needed
	@scripts/environment.sh

weights: install  ## fetch and export the checkpoints of the pipelines
	@$(TRITONKIT) weights $(CHECKPOINTS)

build-repo: weights  ## write the model repository of the shipped pipelines, weights included
	@$(TRITONKIT) build --out $(OUT) $(CHECKPOINTS)

demo: build-repo  ## serve the repository on a real Triton, ask it about a recording and a photo, end it
	@$(TRITONKIT) demo $(OUT)

serve: build-repo  ## serve the repository on this machine until Ctrl-C
	@$(TRITONKIT) serve $(OUT)

serve-gpu: build-repo  ## the same repository by `docker run` on the GPUs of this machine
	@$(TRITONKIT) serve $(OUT) --gpu

GPU ?= detected
plan: install  ## the GPU's memory, what to set, how tensors get from step to step: make plan GPU=L4
	@$(TRITONKIT) plan assistant --gpu "$(GPU)" $(CHECKPOINTS)

image: install  ## build the images of the server and the gateway (needs docker)
	@.venv/bin/python -c "import subprocess; from embedded.docker import build_command, read_versions; \
	[subprocess.run(build_command(read_versions(), one), check=True) for one in ('server', 'gateway', 'worker')]"

test: build-repo lint types diff  ## form, types, stale configs, then the whole test suite, the real server included
	@$(PYTEST) -n 2 --dist loadfile  # two at a time: half of a test is waiting for a server

test-server: build-repo  ## only the tests that need the real server
	@$(PYTEST) -m server

explore: install  ## the tests of properties, with new examples each time
	@$(PYTEST) -m "hypothesis and not server" -n 2 --hypothesis-profile=default

test-gpu: build-repo  ## only the tests that need a GPU; on one, torch and ONNX Runtime for it are installed first
	@python=$$(scripts/gpu.sh) && $$python -m pytest -m gpu

fuzz: install  ## random repositories: our verdict against the real server's (about 8 minutes)
	@.venv/bin/python -m fuzz

bench: build-repo  ## the builder's own costs, a check of 1,000 models, ensembles against one process with no server
	@PYTHONPATH=. .venv/bin/python benchmarks/small_costs.py
	@PYTHONPATH=. .venv/bin/python benchmarks/check_speed.py
	@PYTHONPATH=. .venv/bin/python benchmarks/crossings.py

PEER_SCENARIOS = detect transcribe both assistant gemm frame chat chat_large
bench-peers: build-repo  ## the same models served by others, in turns, into docs/benchmarks.md (more than half an hour)
	@scripts/peers.sh
	@set -e; for one in $(PEER_SCENARIOS); do .venv/bin/python -m benchmarks.peers run $$one --anew; done
	@.venv/bin/python -m benchmarks.peers page

fuzz-inputs: build-repo  ## 10,000 odd requests to the gateway and the models behind it, then Schemathesis (10 minutes)
	@.venv/bin/python -m fuzz.inputs model_repository

traces: build-repo  ## real traces into two collectors of others, Rotel and Phoenix: every span compared with ours
	@scripts/collectors.sh
	@.venv/bin/python -m benchmarks.collectors model_repository

overload: build-repo  ## three times as many requests as can be answered, for two minutes; what became of each
	@.venv/bin/python -m benchmarks.overload model_repository

faults: build-repo  ## break everything once under a server with traffic, count each request (20 minutes, needs root)
	@.venv/bin/python -m benchmarks.faults model_repository

soak: build-repo  ## an hour of mixed traffic; what every process holds meanwhile
	@.venv/bin/python -m benchmarks.soak model_repository --out benchmarks/soak.json

audit: install  ## what is known against the locked packages; says what nobody answered
	@.venv/bin/python scripts/audit.py

release-data: install  ## compare the table of config fields with those of tritonclient's wheels
	@.venv/bin/python scripts/release_data.py 2.51.0 2.73.0

check: install  ## every rule, asked of the shipped pipelines
	@$(TRITONKIT) check

diff: install  ## say which committed configs are stale
	@$(TRITONKIT) diff --out $(OUT)

draw: install  ## draw the shipped pipelines into docs/
	@$(TRITONKIT) draw assistant --out docs/assistant.svg

format: install  ## rewrite the code in its form
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

lint: install  ## report on form and mistakes
	@.venv/bin/ruff format --check . && .venv/bin/ruff check .

types: install  ## report on types
	@.venv/bin/mypy

verify: check audit test  ## all that a commit must hold

lock: install  ## renew requirements/lock.txt from the environment as it is
	@scripts/lock.sh

clean:  ## remove caches and fetched weights, keep .venv
	rm -rf .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info

.PHONY: help install weights build-repo demo serve serve-gpu plan image test test-server explore test-gpu fuzz fuzz-inputs traces overload faults soak audit bench bench-peers release-data check diff draw format lint types verify lock clean
