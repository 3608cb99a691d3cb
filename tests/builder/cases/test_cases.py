"""Every field case that files alone can show: what is said about it, and that a real server does the same.

Cases about code, ONNX files and packed environments stand in `tests/builder/broken/` and carry their id there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from table import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_said(case: Case, findings) -> None:
    found = findings(case.tree(), release=case.release, profile=case.profile)
    for code, model, words in case.say:
        assert any(one.code == code and one.model == model and words in str(one) for one in found), [
            str(one) for one in found
        ]
    errors = {one.code for one in found if one.severity == "error"}
    assert errors <= {code for code, _, _ in case.say}
    if case.loads is not None:
        assert case.loads == (not any(one.refused for one in found if one.model == case.model))


@pytest.mark.server
def test_a_real_server_does_the_same(tmp_path) -> None:
    from fuzz.oracle import verdicts

    asked = {
        f"c{index:02}_": case for index, case in enumerate(CASES) if case.loads is not None and case.profile == "cpu"
    }
    for prefix, case in asked.items():
        for name, content in case.tree(prefix).items():
            path = tmp_path / "repository" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else (content or "").encode())
    said = verdicts(tmp_path / "repository", timeout_s=300)
    wrong = {
        case.id: said[f"{prefix}{case.model}"]
        for prefix, case in asked.items()
        if said[f"{prefix}{case.model}"].loads != case.loads
    }
    assert wrong == {}


@pytest.mark.server
def test_a_real_server_refuses_a_plain_infer_of_an_ensemble_that_a_step_makes_decoupled(tmp_path) -> None:
    """ENS-15: the served config says it, though the file does not; plain calls of both protocols are refused."""
    import tritonclient.grpc
    import tritonclient.http

    from embedded import EmbeddedServer

    (case,) = (one for one in CASES if one.id == "ENS-15")
    for name, content in case.tree().items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(content))
    with EmbeddedServer(tmp_path / "repository", cpu_threads=1) as server:
        for kind, url, words in (
            (tritonclient.grpc, server.grpc, "ModelInfer RPC doesn't support models with decoupled"),
            (tritonclient.http, server.http, "doesn't support models with decoupled"),
        ):
            sent = kind.InferInput("X", [3], "FP32")
            sent.set_data_from_numpy(np.zeros(3, np.float32))
            client = kind.InferenceServerClient(url)
            with pytest.raises(kind.InferenceServerException, match=words):
                client.infer("pipe", [sent])
            client.close()
        with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
            assert client.get_model_config("pipe").config.model_transaction_policy.decoupled
