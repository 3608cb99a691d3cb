"""What all tests share: the shipped repository on the real embedded server, started once, when first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from deploy.monitoring.collector import Collector
from deploy.monitoring.spans import trace_flags
from embedded import EmbeddedServer

CHECKOUT = Path(__file__).parents[1]
PIPELINES = ("transcribe", "detect", "assistant", "assistant_audio", "assistant_image", "assistant_text")

# A change is judged by the same examples as the one before it; `make explore` looks for new ones.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests without a server come first: a mistake in plain code is told within seconds. Those that hang on the clock
    may fail twice before they count as failed: something else may have had the processor."""
    for item in items:
        if item.get_closest_marker("timing"):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))
    items.sort(
        key=lambda item: (item.get_closest_marker("server") is not None, item.get_closest_marker("slow") is not None)
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why a test was run again: one that passes at last would take its reason with it."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"run again: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext[-4000:])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that need a GPU say so where there is none."""
    if item.get_closest_marker("gpu") and not Path("/dev/nvidiactl").exists():
        pytest.skip("needs an NVIDIA GPU; this machine has none")


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout."""
    return CHECKOUT


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    """Where the server `served` sends traces, once a test has turned them on."""
    with Collector() as running:
        yield running


@pytest.fixture(scope="session")
def served(checkout: Path, collector: Collector) -> Iterator[EmbeddedServer]:
    """The shipped pipelines with their real weights on the real server; `.grpc` and `.http` are its addresses."""
    if not (checkout / "model_repository" / "whisper_encoder" / "1" / "model.onnx").exists():
        pytest.fail("model_repository holds no weights. Run `make build-repo` first; `make test` does it.")
    flags = trace_flags(collector.url, level="OFF")
    with EmbeddedServer(
        checkout / "model_repository", load=PIPELINES, cache=checkout / ".cache", flags=flags
    ) as server:
        yield server
