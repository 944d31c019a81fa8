"""Redis as people have it: odd paths, users with few rights, replicas, Sentinel, a cluster, full, frozen, slow."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis
from worldroom.clock import SystemClock
from worldroom.sessions.journal import events
from worldroom.sessions.journal.history import History
from worldroom.sessions.journal.journal import Journal, JournalSpec
from worldroom.sessions.journal.redis_embedded import EmbeddedRedis, binary
from worldroom.sessions.journal.redis_url import RedisUnreachable, check_rights, connect
from worldroom.sessions.journal.spool import Spool
from worldroom.sessions.journal.store import StoredEntry, StoreError
from worldroom.sessions.journal.streams import Streams

FAST = JournalSpec(flush_s=0.002, batch=100, retry_s=0.05, close_s=3.0)


@contextmanager
def valkey(folder: Path, *options: str) -> Iterator[int]:
    """A server on a TCP port of its own; the port."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe, socket.socket() as other:
        probe.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, bus = probe.getsockname()[1], other.getsockname()[1]
    if "--cluster-enabled" in options:  # its bus would be at port + 10000, which may not exist
        options = (*options, "--cluster-port", str(bus))
    command = [str(binary()), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", *options]
    with open(folder / "log", "wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            for _ in range(500):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.01)
            yield port
        finally:
            os.kill(server.pid, signal.SIGCONT)
            server.kill()


async def wrote_and_read(client: Redis, count: int = 3) -> None:
    await check_rights(client)
    streams = Streams(client, keep_s=60)
    entries = [StoredEntry("a b{c}", n, 0.0, b"body") for n in range(1, count + 1)]
    assert await streams.append(entries) == count
    assert [row.number async for row in streams.rows("a b{c}")] == list(range(1, count + 1))
    assert await streams.names() == ["a b{c}"]
    await streams.trim("a b{c}", count)
    assert [row.number async for row in streams.rows("a b{c}")] == [count], "the newest stays: it holds the number"
    await streams.drop("a b{c}")
    await streams.close()


@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "a%41", "a#b", "a?b", "a\nb", b"a\xffb", "a b", "a'b"], ids=lambda name: repr(name)
)
async def test_case_94_a_data_folder_may_have_any_name(tmp_path: Path, name: str | bytes) -> None:
    server = EmbeddedRedis(tmp_path / os.fsdecode(name))
    server.start(timeout_s=10)
    try:
        await wrote_and_read(await server.client())
    finally:
        server.stop()


@pytest.mark.parametrize(
    "url",
    [
        "redis://:pa/ss@host:6379",
        "redis://user:s3cret@host:port",
        "redis://user:s3cret@[::1:6379",
        "http://user:s3cret@host",
        "redis:",
        "",
        "s3cret",
        "redis+sentinel://user:s3cret@host:1/",
        "redis+sentinel://user:s3cret@host/name",
        "redis://user:s3cret@127.0.0.1:1/zero?db=x",
        "rediss://user:s3cret@127.0.0.1:1/0",
        "redis+cluster://user:s3cret@127.0.0.1:1",
        "redis+sentinel://user:s3cret@127.0.0.1:1/name",
    ],
)
async def test_case_95_an_odd_url_is_one_line_without_its_password(url: str) -> None:
    with pytest.raises(RedisUnreachable) as caught:
        await connect(url, timeout_s=0.3)
    line = str(caught.value)
    assert "\n" not in line and "s3cret" not in line and "pa" not in line.replace("path", "").replace("password", "")
    assert caught.value.__cause__ is None, "nor is it in a traceback"


@pytest.mark.parametrize("missing", ["eval", "xadd", "xrange", "xtrim"])
async def test_case_95_a_user_with_too_few_rights_is_told_at_the_start(tmp_path: Path, missing: str) -> None:
    with valkey(tmp_path, "--requirepass", "adm1n") as port:
        admin = Redis(port=port, password="adm1n")
        await admin.execute_command("ACL", "SETUSER", "room", "on", ">s3cret", "~*", "+@all", f"-{missing}")
        client = await connect(f"redis://room:s3cret@127.0.0.1:{port}/0")
        with pytest.raises(RedisUnreachable, match=f"(?i)may not do what a journal needs.*{missing}"):
            await check_rights(client)
        await client.aclose()
        await admin.execute_command("ACL", "SETUSER", "room", f"+{missing}")
        await wrote_and_read(await connect(f"redis://room:s3cret@127.0.0.1:{port}/0"))
        with pytest.raises(RedisUnreachable, match="it refuses this user or password"):
            await connect(f"redis://room:wr0ng@127.0.0.1:{port}/0")
        with pytest.raises(RedisUnreachable, match="it refuses this user or password"):
            await connect(f"redis://127.0.0.1:{port}/0")
        await admin.aclose()


async def test_case_95_a_replica_is_told_at_the_start(tmp_path: Path) -> None:
    with valkey(tmp_path / "a") as primary, valkey(tmp_path / "b", "--replicaof", f"127.0.0.1 {primary}") as replica:
        client = await connect(f"redis://127.0.0.1:{replica}/0")
        with pytest.raises(RedisUnreachable, match="read-only replica; give the URL of its primary"):
            await check_rights(client)
        await client.aclose()


async def test_a_cluster_keeps_a_session_on_one_node(tmp_path: Path) -> None:
    with valkey(tmp_path, "--cluster-enabled", "yes") as port:
        admin = Redis(port=port)
        await admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        async with asyncio.timeout(10):
            while b"cluster_state:ok" not in await admin.execute_command("CLUSTER", "INFO"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await admin.aclose()
        await wrote_and_read(await connect(f"redis+cluster://127.0.0.1:{port}"))


async def test_sentinel_names_the_primary(tmp_path: Path) -> None:
    with valkey(tmp_path / "primary") as port:
        config = tmp_path / "sentinel.conf"
        config.write_text(f"sentinel monitor worlds 127.0.0.1 {port} 1\n")
        with sentinel(config) as at:
            await wrote_and_read(await connect(f"redis+sentinel://127.0.0.1:{at}/worlds"))


@contextmanager
def sentinel(config: Path) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(binary()), str(config), "--sentinel", "--port", str(port)]
    with open(config.with_suffix(".log"), "wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            for _ in range(500):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.01)
            yield port
        finally:
            server.kill()


def like(number: int) -> events.FeedbackGiven:
    return events.FeedbackGiven("ann", number, 1, 0, number)


async def numbers(client: Redis) -> list[int]:
    return [row.number async for row in Streams(client, 60).rows("s")]


async def test_a_full_redis_that_refuses_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with valkey(tmp_path, "--maxmemory-policy", "noeviction") as port:
        client = await connect(f"redis://127.0.0.1:{port}/0")
        await client.config_set("maxmemory", (await client.info("memory"))["used_memory"] + 400_000)
        journal = Journal.open(SystemClock(), Streams(client, 60), tmp_path / "spool", FAST)
        for number in range(1, 6001):
            journal.record("s", like(number))
            if number % 100 == 0:
                await asyncio.sleep(0.002)
        async with asyncio.timeout(10):
            while not journal.counters().away:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        assert journal.counters().spool_bytes > 0
        await client.config_set("maxmemory", "100mb")
        await settled(journal)
        await journal.close()
        assert await numbers(client) == list(range(1, 6001))
        assert journal.counters().dropped == 0
        await client.aclose()


async def test_a_frozen_redis_loses_and_doubles_nothing(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "redis")
    server.start()
    assert server.pid is not None
    client = await server.client(0.2)
    journal = Journal.open(SystemClock(), Streams(client, 60), tmp_path / "spool", FAST)
    for number in range(1, 601):
        journal.record("s", like(number))
        if number in (150, 400):
            os.kill(server.pid, signal.SIGSTOP)
        if number in (300, 550):
            os.kill(server.pid, signal.SIGCONT)
        await asyncio.sleep(0.002)
    await settled(journal)
    await journal.close()
    assert await numbers(client) == list(range(1, 601))
    await client.aclose()
    server.stop()


async def settled(journal: Journal) -> None:
    async with asyncio.timeout(20):
        while (now := journal.counters()).spool_bytes or now.buffered or now.away:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_case_85_a_full_disk_does_not_keep_the_server_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis away and a disk that takes nothing: closing is bounded, and what is lost is said."""

    def full(spool: Spool, entries: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "append", full)
    journal = Journal.open(SystemClock(), _Away(), tmp_path / "spool", FAST)
    for number in range(1, 50):
        journal.record("s", like(number))
    async with asyncio.timeout(8):
        await journal.close()
    assert journal.counters().dropped == 49
    assert [e async for e in History(_Away(), None).read("s")] == []


class _Away(Streams):
    def __init__(self) -> None:
        pass

    async def append(self, entries: object) -> int:
        raise StoreError("journal: Redis is away")

    async def rows(self, session: str, after: int = 0):  # type: ignore[no-untyped-def]
        return
        yield


class _TakenOver(Streams):
    """As sentinels have it: one append fails, and from then on another server answers."""

    def __init__(self, primary: Redis, replica: Redis) -> None:
        super().__init__(primary, 60)
        self.dead, self.moved, self.replica = False, False, Streams(replica, 60)

    async def append(self, entries: Sequence[StoredEntry]) -> int:
        if self.dead:
            self.dead, self.moved = False, True
            raise StoreError("journal: Redis is away")
        return await (self.replica.append(entries) if self.moved else super().append(entries))


async def test_a_replica_that_takes_over_gets_what_its_primary_had_confirmed(tmp_path: Path) -> None:
    """Replication is behind by what the primary confirmed last: those entries are sent to the replica again."""
    with valkey(tmp_path / "a") as primary, valkey(tmp_path / "b") as replica:
        one, other = [await connect(f"redis://127.0.0.1:{port}/0") for port in (primary, replica)]
        store = _TakenOver(one, other)
        journal = Journal.open(SystemClock(), store, tmp_path / "spool", FAST)
        for number in range(1, 101):
            journal.record("s", like(number))
        await settled(journal)
        replicated = [row async for row in store.rows("s")][:60]
        await store.replica.append(replicated)
        store.dead = True
        for number in range(101, 151):
            journal.record("s", like(number))
        await settled(journal)
        await journal.close()
        assert await numbers(other) == list(range(1, 151))
        await one.aclose()
        await other.aclose()
