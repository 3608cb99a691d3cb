import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clients import regions
from clients.arrays import tensor
from clients.endpoint import endpoint
from clients.errors import ArrayError, EndpointError
from clients.regions import (
    belongs_in_region,
    check_is_safe,
    check_shares_memory,
    delete_region,
    delete_stale_regions,
    is_stale,
    new_name,
    write_region,
)

SMALL = tensor("AUDIO", np.arange(4, dtype=np.float32))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(regions, "FOLDER", tmp_path)
    return tmp_path


def test_a_region_holds_the_values_and_only_its_user_can_read_it(folder: Path) -> None:
    name = new_name()
    write_region(name, SMALL)
    assert (folder / name).read_bytes() == SMALL.array.tobytes()
    assert (folder / name).stat().st_mode & 0o777 == 0o600
    delete_region(name)
    delete_region(name)
    assert not list(folder.iterdir())


def test_a_full_folder_is_an_error_with_a_way_out_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # /dev/full accepts an open and refuses every byte, as a full /dev/shm does.
    opened = []

    def open_full(path: Path, flags: int, mode: int) -> int:
        opened.append(path)
        return os_open("/dev/full", os.O_WRONLY)

    os_open = os.open
    monkeypatch.setattr(regions.os, "open", open_full)
    with pytest.raises(ArrayError, match="16 bytes did not fit in /dev/shm .No space left.*--shm-size"):
        write_region("tritonkit-client-test", SMALL)
    assert opened and not opened[0].exists()


def test_names_differ_and_belong_to_this_living_process() -> None:
    first, second = new_name(), new_name()
    assert first != second
    assert not is_stale(first)


def test_a_region_of_a_process_that_ended_is_stale_and_is_deleted(folder: Path) -> None:
    script = "from clients.regions import new_name; print(new_name())"
    theirs = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    ours = new_name()
    for name in (theirs, ours, "tritonkit-client-other", "psm_1234"):
        (folder / name).touch()
    assert is_stale(theirs)
    delete_stale_regions()
    assert {path.name for path in folder.iterdir()} == {ours, "tritonkit-client-other", "psm_1234"}


def test_a_later_process_with_the_same_pid_does_not_keep_a_region_alive() -> None:
    namespace, pid, start, rest = new_name().removeprefix("tritonkit-client-").split("-")
    assert is_stale(f"tritonkit-client-{namespace}-{pid}-{int(start) - 1}-{rest}")


@pytest.mark.parametrize("name", ["psm_1234", "tritonkit-client-1-2-x", "tritonkit-1-2-3-ab", ""])
def test_what_is_not_ours_is_never_stale(name: str) -> None:
    assert not is_stale(name)


def test_a_region_of_another_pid_namespace_is_left_alone() -> None:
    namespace, pid, start, rest = new_name().removeprefix("tritonkit-client-").split("-")
    assert not is_stale(f"tritonkit-client-{int(namespace) + 1}-{pid}-{int(start) - 1}-{rest}")


def test_small_inputs_and_text_are_not_worth_a_region() -> None:
    assert not belongs_in_region(SMALL)
    assert not belongs_in_region(tensor("QUESTION", "a" * 2**20))
    assert belongs_in_region(tensor("AUDIO", np.zeros(2**18, np.float32)))


def test_shared_memory_with_a_server_elsewhere_is_refused() -> None:
    check_shares_memory(endpoint("grpc://127.0.0.1:8001"))
    with pytest.raises(EndpointError, match="another machine; shared memory needs a server on this one"):
        check_shares_memory(endpoint("grpc://10.0.0.1:8001"))


def test_a_server_that_would_crash_is_refused() -> None:
    """CLI-04."""
    check_is_safe(endpoint("grpc://localhost"), "2.50.0")
    check_is_safe(endpoint("grpc://localhost"), "2.73.0dev")
    with pytest.raises(EndpointError, match=r"Triton 2\.49\.0; shared memory needs 2\.50 or newer"):
        check_is_safe(endpoint("grpc://localhost"), "2.49.0")
