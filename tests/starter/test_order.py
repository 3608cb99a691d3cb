"""The order of a repository's models, and what is refused."""

from __future__ import annotations

import pytest

from starter.__main__ import parser, server_flags
from starter.errors import RepositoryError
from starter.order import read_repository, start_order

STEP = 'step {{ model_name: "{}" model_version: -1 }} '


def _repository(tmp_path, **configs):
    for name, text in configs.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(text)
    return tmp_path


def _ensemble(*steps):
    return 'platform: "ensemble"\nensemble_scheduling { ' + "".join(STEP.format(step) for step in steps) + "}"


PYTHON, STREAMED = 'backend: "python"', 'backend: "python" model_transaction_policy { decoupled: true }'


def test_others_come_first_then_language_models_then_ensembles_the_inner_before_the_outer(tmp_path):
    repository = _repository(
        tmp_path,
        all=_ensemble("inner", "llm"),
        inner=_ensemble("zoom"),
        llm=STREAMED,
        other='backend: "vllm"',
        stream=STREAMED,
        zoom=PYTHON,
    )
    (repository / "llm" / "1" / "model.json").write_text("{}")
    models = read_repository(repository)
    assert start_order(models) == ("stream", "zoom", "llm", "other", "inner", "all")
    assert start_order(models, ["all"]) == ("zoom", "llm", "inner", "all")
    assert [one.name for one in models.values() if one.is_decoupled] == ["llm", "other", "stream"]


def test_the_shipped_pipeline_ends_with_the_language_model_and_its_ensemble(checkout):
    order = start_order(read_repository(checkout / "model_repository", "gpu"), ["assistant"])
    assert order[-2:] == ("llm", "assistant")
    assert set(order[:-2]) == {
        "prompt", "whisper_features", "whisper_encoder", "whisper_decoder", "yolo_preprocess", "yolo",
        "yolo_postprocess",
    }  # fmt: skip


def test_the_config_of_the_profile_is_read_where_there_is_one(tmp_path):
    repository = _repository(tmp_path, a=PYTHON, b=PYTHON)
    (repository / "a" / "configs").mkdir()
    (repository / "a" / "configs" / "gpu.pbtxt").write_text(STREAMED)
    assert [one.is_decoupled for one in read_repository(repository, "gpu").values()] == [True, False]
    assert [one.is_decoupled for one in read_repository(repository).values()] == [False, False]


def test_comments_count_nothing(tmp_path):
    repository = _repository(tmp_path, a=f'# platform: "ensemble"\n{PYTHON}\n  # decoupled: true\n')
    assert read_repository(repository)["a"].kind == "model"


def test_what_cannot_be_loaded_is_refused_with_its_path(tmp_path):
    with pytest.raises(RepositoryError, match="no such folder"):
        read_repository(tmp_path / "none")
    with pytest.raises(RepositoryError, match="no config.pbtxt in any folder"):
        read_repository(tmp_path)
    models = read_repository(_repository(tmp_path, a=_ensemble("b"), b=_ensemble("a"), c=_ensemble("gone"), d=PYTHON))
    with pytest.raises(RepositoryError, match="a > b > a: ensembles that contain each other"):
        start_order(models, ["a"])
    with pytest.raises(RepositoryError, match="gone, a step of c: the repository has no such model"):
        start_order(models, ["c"])
    with pytest.raises(RepositoryError, match="what: the repository has no such model; it has a, b, c, d"):
        start_order(models, ["what"])


def test_models_that_wait_for_resources_make_the_server_heed_them(tmp_path):
    limiter = "instance_group { kind: KIND_CPU rate_limiter { resources { name: 'r' count: 1 } } }"
    models = read_repository(_repository(tmp_path, a=PYTHON, b=f"{PYTHON} {limiter}"))
    assert [one.is_limited for one in models.values()] == [False, True]
    given = parser().parse_args(["run", "--", "tritonserver"])
    assert "--rate-limit=execution_count" in server_flags(given, "key", limited=True)
    assert "--rate-limit=execution_count" not in server_flags(given, "key")
