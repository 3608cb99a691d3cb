"""The fuzzer itself, and a small run of it against the real server; the whole is `make fuzz`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from builder.messages import config_of, parsed_config
from builder.pbtxt import read
from fuzz.compare import compare, write
from fuzz.generate import make_world, random_ensemble, random_model
from fuzz.textform import config_text
from fuzz.verdict import expected


def test_a_seed_gives_one_world() -> None:
    assert make_world(7, repositories=20, pool=4, models=0.5) == make_world(7, repositories=20, pool=4, models=0.5)
    assert make_world(7, repositories=20, pool=4, models=0.5) != make_world(8, repositories=20, pool=4, models=0.5)


@pytest.mark.parametrize("seed", range(40))
def test_any_form_of_a_text_means_the_same(seed: int) -> None:
    chance = random.Random(seed)
    model = random_model(chance)
    for config in (model, random_ensemble({"m": model}, chance)):
        one, other = (config_text(config, random.Random(form)) for form in (seed, seed + 1))
        assert read(one).problems == () and read(one).config == read(other).config
        assert config_of(parsed_config_message(one)) == config_of(parsed_config_message(other))


def parsed_config_message(text: str):
    """The text as protobuf's own reader takes it."""
    from builder.messages import config_message

    return config_message(parsed_config(text, "a test"))


def test_models_of_the_pool_are_good(tmp_path: Path) -> None:
    world = make_world(3, repositories=0, pool=40, models=0.0)
    assert not any(expected(write(tmp_path / "world", world.pool)).values())


def test_broken_and_good_repositories_are_made(tmp_path: Path) -> None:
    world = make_world(3, repositories=100, pool=10, models=0.5)
    ours = expected(write(tmp_path / "world", [*world.pool, *(model for one in world.repositories for model in one)]))
    own = [found for name, found in ours.items() if name.startswith("r")]
    assert 10 < sum(not found for found in own) < len(own) - 30
    assert len({one.code for found in own for one in found}) > 20


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_server_and_the_rules_agree(tmp_path: Path, seed: int) -> None:
    outcome = compare(make_world(seed, repositories=60, pool=8, models=0.2), tmp_path, timeout_s=300)
    assert outcome.disagreements == ()
    assert outcome.loading > 8


@pytest.mark.server
@pytest.mark.slow
def test_requests_that_fail_were_foretold(tmp_path: Path) -> None:
    from fuzz.requests import ask

    answers = ask(make_world(5, repositories=60, pool=8, models=0.0), tmp_path, seed=5)
    assert len(answers) > 20
    assert [one for one in answers if one.words and not one.is_foretold] == []
