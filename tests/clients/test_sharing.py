"""The life of regions against a server that misbehaves on demand; test_shared_memory.py has the real one."""

import asyncio
import gc
from pathlib import Path

import numpy as np
import pytest

from clients import regions
from clients.arrays import tensor, text
from clients.endpoint import endpoint
from clients.errors import ClientError, EndpointError, RequestRejected, RequestTimeout, Unreachable
from clients.sharing import Sharing, release_at_exit
from clients.steps import run, run_async
from clients.tensors import Request

WHERE = endpoint("grpc://127.0.0.1:1")
BIG = Request(model="m", tensors=(tensor("X", np.zeros(2**18, np.float32)), text("NAME", "a")))


class Server:
    """Answers as a transport does; refuses as often as it is told."""

    def __init__(self, version: str = "2.51.0", known: tuple[str, ...] = ()) -> None:
        self.version = version
        self.registered = set(known)
        self.refusals: list[ClientError] = []
        self.register_error: ClientError | None = None
        self.is_closed = False

    def server_version(self, timeout_s: float) -> str:
        return self.version

    def region_names(self, timeout_s: float) -> tuple[str, ...]:
        return tuple(self.registered)

    def register_region(self, name: str, key: str, byte_size: int, timeout_s: float) -> None:
        if self.register_error:
            raise self.register_error
        assert (regions.FOLDER / key.removeprefix("/")).stat().st_size == byte_size
        self.registered.add(name)

    def unregister_region(self, name: str, timeout_s: float) -> None:
        if self.refusals:
            raise self.refusals.pop()
        self.registered.discard(name)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(regions, "FOLDER", tmp_path)
    return tmp_path


def sharing(server: Server) -> Sharing:
    return Sharing(WHERE, lambda: server)


def in_use() -> RequestRejected:
    return RequestRejected("region", "it is currently in use")


def test_big_inputs_are_placed_and_small_ones_are_sent() -> None:
    server, names = Server(), []
    shared = sharing(server)
    placed = run(shared.place(BIG, names), server)
    assert [one.region for one in placed.tensors] == [names[0], ""]
    assert server.registered == set(names)


def test_nothing_is_left_on_the_machine_once_the_server_has_mapped_it(folder: Path) -> None:
    server = Server()
    run(sharing(server).place(BIG, []), server)
    assert list(folder.iterdir()) == []


def test_release_unregisters() -> None:
    server, names = Server(), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    run(shared.release(names), server)
    assert not server.registered


def test_the_same_steps_serve_asyncio() -> None:
    class AsyncServer(Server):
        def __getattribute__(self, name: str) -> object:
            value = super().__getattribute__(name)
            if name not in ("server_version", "region_names", "register_region", "unregister_region"):
                return value

            async def call(*arguments: object) -> object:
                return value(*arguments)

            return call

    async def live(server: AsyncServer) -> None:
        shared, names = sharing(server), []
        await run_async(shared.place(BIG, names), server)
        server.refusals = [in_use()]
        await run_async(shared.release(names), server)

    server = AsyncServer()
    asyncio.run(live(server))
    assert not server.registered


def test_a_region_still_read_is_tried_again_until_the_server_lets_go() -> None:
    """CLI-04."""
    server, names = Server(), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    server.refusals = [in_use()] * 3
    run(shared.release(names), server)
    assert not server.registered


def test_a_region_not_let_go_in_time_is_unregistered_by_the_next_request() -> None:
    """CLI-04."""
    server, names = Server(), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    server.refusals = [in_use()]
    run(shared.release(names, ()), server)
    assert server.registered == set(names)
    run(shared.place(BIG, later := []), server)
    assert server.registered == set(later)


def test_close_unregisters_what_is_still_in_use() -> None:
    server, names = Server(), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    shared.close()
    assert not server.registered


def test_a_server_that_does_not_answer_is_asked_once_and_again_by_the_next_request() -> None:
    server, names = Server(), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    server.refusals = [RequestTimeout("region", "no answer")] * 2
    run(shared.release(names), server)
    assert len(server.refusals) == 1
    server.refusals = []
    run(shared.place(BIG, later := []), server)
    assert server.registered == set(later)


def test_release_after_close_does_nothing() -> None:
    server, names = Server(), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    shared.close()
    server.refusals = [in_use()]
    run(shared.release(names), server)
    assert len(server.refusals) == 1


def test_close_warns_of_a_region_that_is_never_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLI-04: retried, then reported."""
    monkeypatch.setattr("clients.sharing.CLOSING_PAUSES_S", (0.0,))
    server, names = Server(), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    server.refusals = [in_use()] * 9
    with pytest.warns(ResourceWarning, match=names[0]):
        shared.close()


def test_a_lost_server_has_nothing_left_to_unregister() -> None:
    server, names = Server(), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    server.refusals = [Unreachable("grpc://", "connection refused")]
    run(shared.release(names), server)
    shared.close()


def test_a_refused_registration_says_what_to_do_and_leaves_nothing(folder: Path) -> None:
    server, names = Server(), []
    shared = sharing(server)
    server.register_error = RequestRejected("region", "Unable to open shared memory region")
    with pytest.raises(RequestRejected, match="Unable to open shared memory region.*--ipc=host.*--allow-client-shm"):
        run(shared.place(BIG, names), server)
    assert list(folder.iterdir()) == []
    run(shared.release(names), server)
    assert not server.registered


def test_what_a_dead_client_left_is_unregistered_before_the_first_region() -> None:
    namespace, pid, start, rest = regions.new_name().removeprefix("tritonkit-client-").split("-")
    dead = f"tritonkit-client-{namespace}-{pid}-{int(start) - 1}-{rest}"
    server, names = Server(known=(dead, "theirs", regions.new_name())), []
    shared = sharing(server)
    run(shared.place(BIG, names), server)
    assert dead not in server.registered
    assert {"theirs", *names} < server.registered
    assert len(server.registered) == 3


def test_an_old_server_is_refused_every_time() -> None:
    """CLI-04: one that would crash."""
    server = Server(version="2.40.0")
    shared = sharing(server)
    for _ in range(2):
        with pytest.raises(EndpointError, match=r"Triton 2\.40\.0"):
            run(shared.place(BIG, []), server)


def test_a_client_that_is_dropped_without_closing_leaves_nothing() -> None:
    server = Server()
    shared = sharing(server)
    run(shared.place(BIG, []), server)
    del shared
    gc.collect()
    assert not server.registered


def test_what_is_left_at_the_end_of_the_process_is_unregistered_even_if_one_is_still_read() -> None:
    server = Server(known=("a", "b"))
    server.refusals = [in_use()]
    release_at_exit({"a", "b"}, lambda: server)
    assert len(server.registered) == 1
    assert server.is_closed


def test_nothing_is_contacted_at_the_end_if_nothing_is_left() -> None:
    def connect() -> Server:
        raise AssertionError("no need to connect")

    release_at_exit(set(), connect)
