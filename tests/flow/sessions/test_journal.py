"""The journal on a real embedded Redis: outages lose and double nothing, and no server is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from worldroom.clock import SystemClock
from worldroom.engine.api import Conditions, PromptShare
from worldroom.sessions.journal import events
from worldroom.sessions.journal.entry import Entry
from worldroom.sessions.journal.events import FeedbackGiven
from worldroom.sessions.journal.history import History
from worldroom.sessions.journal.journal import Journal, JournalSpec
from worldroom.sessions.journal.redis_embedded import EmbeddedRedis
from worldroom.sessions.journal.redis_url import RedisUnreachable, connect
from worldroom.sessions.journal.store import StoredEntry, StoreError
from worldroom.sessions.journal.streams import Streams

FAST = JournalSpec(flush_s=0.005, batch=50, retry_s=0.02)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


def kill(redis: EmbeddedRedis) -> None:
    """End the server as a crash does."""
    pid = redis.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while redis.pid is not None:
        os.sched_yield()


def open_file(path: Path) -> int:
    """The descriptor under which this process has the file open."""
    links = Path("/proc/self/fd")
    return next(int(link.name) for link in links.iterdir() if link.exists() and link.readlink() == path)


def feedback(chunk: int) -> events.FeedbackGiven:
    return events.FeedbackGiven(participant="p", chunk=chunk, value=1, epoch=0, frame=chunk)


async def streams_of(redis: EmbeddedRedis) -> Streams:
    return Streams(await redis.client(1.0), keep_s=3600)


async def chunks_in(redis: EmbeddedRedis, session: str) -> list[tuple[int, int]]:
    """(event number, chunk) of every feedback event in a session's stream."""
    streams = await streams_of(redis)
    entries = [entry async for entry in History(streams, None).read(session)]
    assert all(isinstance(entry, Entry) for entry in entries)
    rows = [(e.number, e.event.chunk) for e in entries if isinstance(e, Entry) and isinstance(e.event, FeedbackGiven)]
    await streams.close()
    return rows


def numbered(count: int) -> list[tuple[int, int]]:
    return [(i + 1, i) for i in range(count)]


async def test_events_come_back_as_they_were_recorded(redis: EmbeddedRedis, tmp_path: Path) -> None:
    streams = await streams_of(redis)
    journal = Journal.open(SystemClock(), streams, tmp_path / "spool", FAST)
    conditions = Conditions(
        epoch=0,
        controls=(1.0, 0.1 + 0.2),
        pointer=(1 / 3, -0.0),
        prompts=(PromptShare(key="k", weight=0.7),),
        prompt_version=1,
        input_seq=9,
    )
    recorded = [feedback(1), events.ChunkBegun(chunk=4, conditions=conditions), events.SessionClosed(reason="lease")]
    for event in recorded:
        journal.record("s", event)
    await journal.close()
    assert [event async for event in History(streams, None).events("s")] == recorded
    counters = journal.counters()
    assert (counters.recorded, counters.written, counters.repeated, counters.spooled) == (3, 3, 0, 0)
    await streams.close()


async def test_sending_entries_again_doubles_nothing(redis: EmbeddedRedis) -> None:
    streams = await streams_of(redis)
    entries = [StoredEntry("s", n, 0.0, b'{"type":"closed","reason":"x"}') for n in range(1, 6)]
    assert await streams.append(entries[:3]) == 3
    assert await streams.append(entries) == 2
    assert [entry.number async for entry in streams.rows("s")] == [1, 2, 3, 4, 5]
    await streams.close()


async def test_killing_redis_in_mid_stream_loses_and_doubles_nothing(redis: EmbeddedRedis, tmp_path: Path) -> None:
    streams = await streams_of(redis)
    journal = Journal.open(SystemClock(), streams, tmp_path / "spool", FAST)
    for chunk in range(1200):
        journal.record("one" if chunk % 2 else "two", feedback(chunk // 2))
        if chunk in (300, 700):
            assert redis.pid is not None
            os.kill(redis.pid, signal.SIGKILL)
        if chunk in (500, 900):
            redis.revive()
        await asyncio.sleep(0.001)
    await journal.close()
    counters = journal.counters()
    assert counters.outages >= 1 and counters.spooled > 0 and counters.dropped == 0
    if counters.spool_bytes:  # closed before the revived server answered: the next process drains the spool
        redis.wait_ready()
        await (await _reopened(redis, tmp_path)).close()
    assert await chunks_in(redis, "one") == numbered(600)
    assert await chunks_in(redis, "two") == numbered(600)
    await streams.close()


async def _reopened(redis: EmbeddedRedis, tmp_path: Path) -> Journal:
    journal = Journal.open(SystemClock(), await streams_of(redis), tmp_path / "spool", FAST)
    while journal.counters().spool_bytes:  # noqa: ASYNC110 - there is no event for an empty spool
        await asyncio.sleep(0.005)
    return journal


async def test_a_spool_left_by_an_earlier_process_is_drained_first(redis: EmbeddedRedis, tmp_path: Path) -> None:
    streams = await streams_of(redis)
    kill(redis)
    journal = Journal.open(SystemClock(), streams, tmp_path / "spool", FAST)
    for chunk in range(100):
        journal.record("s", feedback(chunk))
    await journal.close()
    assert journal.counters().spool_bytes > 0
    redis.revive()
    redis.wait_ready()
    await (await _reopened(redis, tmp_path)).close()
    assert await chunks_in(redis, "s") == numbered(100)
    await streams.close()


async def test_the_embedded_server_is_revived_by_the_journal(redis: EmbeddedRedis, tmp_path: Path) -> None:
    streams = await streams_of(redis)
    journal = Journal.open(SystemClock(), streams, tmp_path / "spool", FAST, on_outage=redis.revive)
    journal.record("s", feedback(0))
    kill(redis)
    for chunk in range(1, 50):
        journal.record("s", feedback(chunk))
    while (await asyncio.sleep(0.005)) is None and journal.counters().written < 50:
        pass
    await journal.close()
    assert await chunks_in(redis, "s") == numbered(50)
    await streams.close()


class _Hanging(Streams):
    """A Redis that takes a batch and neither confirms nor refuses it until it is told to."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()
        self.taken: list[StoredEntry] = []

    async def append(self, entries: "list[StoredEntry]") -> int:  # type: ignore[override]
        tips = {e.session: e.number for e in self.taken}
        new = [entry for entry in entries if entry.number > tips.get(entry.session, 0)]
        self.taken += new
        await self.answer.wait()
        return len(new)


async def test_a_hanging_redis_does_not_grow_the_memory(tmp_path: Path) -> None:
    streams = _Hanging()
    spec = JournalSpec(flush_s=0.0, batch=10, buffer=50, retry_s=0.01)
    journal = Journal.open(SystemClock(), streams, tmp_path / "spool", spec)
    for chunk in range(400):
        journal.record("s", feedback(chunk))
        assert journal.counters().buffered <= 61
        await asyncio.sleep(0)
    assert journal.counters().spool_bytes > 0
    streams.answer.set()
    await journal.close()
    assert [entry.number for entry in streams.taken] == list(range(1, 401))
    assert journal.counters().dropped == 0


async def test_recording_never_raises_while_redis_refuses(tmp_path: Path) -> None:
    class Refusing(Streams):
        def __init__(self) -> None:
            pass

        async def append(self, entries: "list[StoredEntry]") -> int:  # type: ignore[override]
            raise StoreError("OOM command not allowed")

    journal = Journal.open(SystemClock(), Refusing(), tmp_path / "spool", FAST)
    for chunk in range(100):
        journal.record("s", feedback(chunk))
        await asyncio.sleep(0)
    await journal.close()
    counters = journal.counters()
    assert (counters.recorded, counters.spooled, counters.written, counters.away) == (100, 100, 0, True)


async def test_a_journal_that_is_only_in_memory_keeps_the_newest_and_counts_the_rest() -> None:
    journal = Journal(SystemClock(), spec=JournalSpec(buffer=10))
    for chunk in range(25):
        journal.record("s", feedback(chunk))
    assert [event.chunk for event in journal.buffered("s") if isinstance(event, events.FeedbackGiven)] == list(
        range(15, 25)
    )
    assert journal.counters().dropped == 15
    await journal.close()


async def test_an_unreachable_redis_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(RedisUnreachable, match=r"^no Redis answers at 127\.0\.0\.1:1 .*leave out --redis") as caught:
        await connect("redis://:secret@127.0.0.1:1/0", timeout_s=0.5)
    assert "secret" not in str(caught.value)
    with pytest.raises(RedisUnreachable, match="not a Redis URL"):
        await connect("http://127.0.0.1:1")


async def test_two_servers_do_not_share_a_data_directory(redis: EmbeddedRedis, tmp_path: Path) -> None:
    with pytest.raises(RedisUnreachable, match="another Worldroom server uses"):
        EmbeddedRedis(tmp_path / "redis").start()


async def test_entries_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    for first in (1, 4):
        server = EmbeddedRedis(tmp_path / "redis")
        server.start()
        streams = await streams_of(server)
        await streams.append(
            [StoredEntry("s", n, 0.0, b'{"type":"closed","reason":"x"}') for n in range(first, first + 3)]
        )
        numbers = [entry.number async for entry in streams.rows("s")]
        await streams.close()
        server.stop()
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert not (tmp_path / "redis" / "valkey.pid").exists()


async def test_a_data_directory_with_a_long_path_works(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / ("d" * 120))
    server.start()
    try:
        await (await server.client()).aclose()
    finally:
        server.stop()
    assert not server.socket.exists()


_PARENT = """
import sys, time
from pathlib import Path
from worldroom.sessions.journal.redis_embedded import EmbeddedRedis
server = EmbeddedRedis(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_the_server_dies_with_a_killed_parent(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _alive(pid)
        parent.kill()
        parent.wait()
    for _ in range(1000):
        if not _alive(pid):
            break
        os.sched_yield()
        signal.sigtimedwait([], 0.01)
    assert not _alive(pid)
    again = EmbeddedRedis(tmp_path)
    again.start()
    again.stop()


def test_a_server_that_outlived_its_owner_is_ended_at_the_next_start(tmp_path: Path) -> None:
    first = EmbeddedRedis(tmp_path)
    first.start()
    orphan = first.pid
    assert orphan is not None
    os.close(open_file(tmp_path / "lock"))  # what the kernel does when the owner is killed
    second = EmbeddedRedis(tmp_path)
    second.start()
    try:
        _, status = os.waitpid(orphan, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert second.pid is not None and second.pid != orphan
    finally:
        second.stop()
