"""Orders, the config file made of them, and the smallest requests; without a cluster."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile
import yaml
from PIL import Image
from typer.testing import CliRunner

from clients.signature import Input, Signature
from deploy.errors import DeployError
from deploy.facts import Facts
from deploy.ray.canary import PIXEL, smallest, wav, zeros
from deploy.ray.orders import Orders, config_of, options_of, orders_of, sizes_of
from tritonkit.__main__ import joined

ORDERS = Orders(repository="/models", pipelines=("assistant", "detect"), least=0, most=6, at_once=12, gpus=1)


def test_config_file_holds_the_orders_and_gives_them_back() -> None:
    config = yaml.safe_load(yaml.safe_dump(config_of(ORDERS)))
    assert orders_of(config["applications"][0]["args"]) == ORDERS


@pytest.mark.filterwarnings("ignore:Using extra keyword arguments on `Field`")  # of Ray's own schema
def test_config_file_has_the_form_that_ray_serve_wants() -> None:
    from ray.serve.schema import ServeDeploySchema

    schema = ServeDeploySchema.model_validate(config_of(ORDERS))
    (application,) = schema.applications
    (deployment,) = application.deployments
    assert deployment.autoscaling_config["min_replicas"] == 0  # type: ignore[index]
    assert deployment.ray_actor_options.num_gpus == 1  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore:Using extra keyword arguments on `Field`")
def test_pipelines_apart_have_an_application_and_an_environment_each() -> None:
    from ray.serve.schema import ServeDeploySchema

    orders = replace(ORDERS, env={"HF_TOKEN": "t"}, flags=("--log-verbose=1",))
    config = yaml.safe_load(yaml.safe_dump(config_of(orders, apart=True)))
    assert [one.route_prefix for one in ServeDeploySchema.model_validate(config).applications] == [
        "/assistant",
        "/detect",
    ]
    for one, pipeline in zip(config["applications"], ORDERS.pipelines, strict=True):
        assert orders_of(one["args"]) == replace(orders, pipelines=(pipeline,))
        assert one["runtime_env"]["env_vars"]["HF_TOKEN"] == "t"


def test_sizes_of_a_replica_are_those_of_its_plans(facts: Facts) -> None:
    greedy = replace(facts, gpus=2, flags=("--pinned-memory-pool-byte-size=9", "--cuda-memory-pool-byte-size=1:7"))
    sizes = sizes_of([facts, greedy])
    assert sizes["gpus"] == 2.0
    assert set(sizes["flags"]) == {*facts.flags, "--cuda-memory-pool-byte-size=1:7"}
    assert sizes_of([]) == {}


def test_scaling_follows_what_one_replica_is_planned_for() -> None:
    options = options_of(ORDERS)
    assert options["autoscaling_config"]["target_ongoing_requests"] == 12
    assert (options["autoscaling_config"]["min_replicas"], options["autoscaling_config"]["max_replicas"]) == (0, 6)
    assert options["max_ongoing_requests"] > 12
    assert options["health_check_timeout_s"] > ORDERS.health_timeout_s


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"repository": "/m", "pipelines": ["a"], "replicas": 3}, "no replicas is known"),
        ({"pipelines": ["a"]}, "repository is missing"),
    ],
)
def test_args_that_are_no_orders_are_refused_by_name(values: dict, words: str) -> None:
    with pytest.raises(DeployError, match=words):
        orders_of(values)


def test_smallest_recording_and_picture_are_real_ones() -> None:
    samples, rate_hz = soundfile.read(io.BytesIO(wav()))
    assert (len(samples), rate_hz, samples.any()) == (1600, 16000, False)
    picture = Image.open(io.BytesIO(PIXEL))
    picture.load()
    assert picture.size == (1, 1)
    assert smallest("somebody's model") is None


def test_smallest_inputs_of_any_model_are_those_that_it_needs() -> None:
    def taking(**inputs: Input) -> dict[str, list]:
        signature = Signature(model="m", inputs=inputs, max_batch_size=0, is_decoupled=False)
        return {name: array.tolist() for name, array in zeros(signature).items()}

    numbers, words = (
        Input(datatype="FP32", dims=(-1, 2), is_optional=False),
        Input(datatype="BYTES", dims=(1,), is_optional=False),
    )
    maybe = replace(numbers, is_optional=True)
    assert taking(X=numbers, TEXT=words, MORE=maybe) == {"X": [[0.0, 0.0]], "TEXT": [b""]}
    assert taking(X=maybe) == {"X": [[0.0, 0.0]]}


def test_command_writes_a_config_file(tmp_path: Path) -> None:
    out = tmp_path / "serve.yaml"
    done = CliRunner().invoke(joined()[0], ["ray", "detect", "--out", str(out), "--most", "2"])
    assert done.exit_code == 0, done.stderr
    (application,) = yaml.safe_load(out.read_text())["applications"]
    assert application["args"]["pipelines"] == ["detect"]
    wrong = CliRunner().invoke(joined()[0], ["ray", "detect", "--out", str(out), "--least", "9"])
    assert wrong.exit_code == 2 and "more than --most" in wrong.stderr
