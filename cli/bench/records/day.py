"""A long room in simulated time: every event of it is recorded, stored in an embedded Redis, archived and read back.

The clock is moved on by a chunk with every chunk, as fast as the journal takes them. Nothing is rendered.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....clock import SystemClock
from .amounts import Amounts, resident_mib

if TYPE_CHECKING:
    from ....sessions.journal.journal import Journal

INPUTS_PER_S = 4
PROMPT_EVERY_S = 300
PACE = 200
"""Chunks between two moments in which the journal may write."""
BACKLOG_MOST = 2_000
HOT_MOST = 3 << 19


class DayReport(msgspec.Struct, frozen=True):
    """`redis_room_max`: bytes of the room's stream, at most; `redis_max`: of the whole server. `spooled`: entries that
    went to the disk because the archive did not keep up. `rss_mib`: of this process in the end."""

    hours: float
    chunks_per_s: int
    entries: int
    read_back: int
    missing: int
    redis_room_max: int
    redis_max: int
    archive_bytes: int
    bytes_per_hour: int
    parts: int
    problems: int
    spooled: int
    seconds: float
    rss_mib: float


class DayClock(SystemClock):
    """Its wall is the room's time."""

    at = 1_796_000_000.0

    def wall(self) -> float:
        return self.at


async def measure_day(amounts: Amounts) -> tuple[DayReport, ...]:
    from ....sessions.journal import events
    from ....sessions.journal.archive import Archive
    from ....sessions.journal.archiver import Archiver, ArchiveSpec
    from ....sessions.journal.history import Cut, History
    from ....sessions.journal.journal import Journal
    from ....sessions.journal.redis_embedded import EmbeddedRedis
    from ....sessions.journal.streams import Streams

    began, clock = time.perf_counter(), DayClock()
    with tempfile.TemporaryDirectory(prefix="worldroom-bench-") as folder:
        redis = EmbeddedRedis(Path(folder) / "redis")
        redis.start()
        try:
            client = await redis.client()
            store, archive = Streams(client, 3600), Archive(Path(folder) / "archive")
            archiver = Archiver(clock, store, archive, ArchiveSpec(settle_s=0.01))
            journal = Journal.open(clock, store, Path(folder) / "spool", archiver=archiver)
            room_max = server_max = 0
            journal.record("day", events.SessionOpened("lobby", "toy", "1", "w0", 2, "int", 7, 0))
            for chunk in range(round(amounts.hours * 3600 * amounts.chunks)):
                _happens(journal, chunk, amounts.chunks)
                clock.at += 1 / amounts.chunks
                if chunk % PACE == 0:
                    await _caught_up(journal)
                    if chunk % (100 * PACE) == 0:
                        room_max = max(room_max, await store.memory("day"))
                        server_max = max(server_max, int((await client.info("memory"))["used_memory_peak"]))
            journal.record("day", events.SessionClosed(reason="lease"))
            recorded = journal.counters().recorded
            await journal.close()
            spooled = journal.counters().spooled
            index = await asyncio.to_thread(archive.index, "day")
            assert index is not None, "the room was archived"
            problems = await asyncio.to_thread(archive.check, index)
            read = missing = 0
            async for row in History(store, archive).rows("day"):
                if isinstance(row, Cut):
                    missing += row.last - row.first + 1
                else:
                    read += 1
            await store.close()
        finally:
            redis.stop()
    return (
        DayReport(
            hours=amounts.hours,
            chunks_per_s=amounts.chunks,
            entries=recorded,
            read_back=read,
            missing=missing,
            redis_room_max=room_max,
            redis_max=server_max,
            archive_bytes=index.size,
            bytes_per_hour=round(index.size / amounts.hours),
            parts=len(index.parts),
            problems=len(problems),
            spooled=spooled,
            seconds=round(time.perf_counter() - began, 1),
            rss_mib=resident_mib(),
        ),
    )


def _happens(journal: "Journal", chunk: int, per_s: int) -> None:
    """What a room of so many chunks a second records while somebody drives and now and then writes."""
    from ....engine.api import Conditions, PromptShare, Timings
    from ....sessions.journal import events
    from ....sessions.messages import KeyEdge, Transition

    prompt, inputs = chunk // (PROMPT_EVERY_S * per_s) + 1, max(1, per_s // INPUTS_PER_S)
    if chunk % (PROMPT_EVERY_S * per_s) == 0:
        journal.record("day", events.PromptAsked("ann", prompt, f"a town by night {prompt}", Transition.BLEND, 12))
        journal.record("day", events.PromptReady(prompt, f"{prompt:032x}"))
    if chunk % inputs == 0:
        edge = KeyEdge(chunk, "ArrowLeft", chunk % 2 == 0)
        journal.record("day", events.InputReceived("ann", chunk, ("ArrowUp",), (edge,)))
    share = PromptShare(f"{prompt:032x}", 1.0)
    steer = float(chunk // inputs % 2)
    conditions = Conditions(0, (1.0, steer, 0.0), (0.0, 0.0), (share,), prompt, chunk)
    journal.record("day", events.ChunkBegun(chunk, conditions))
    timings = Timings(40 + chunk % 7, 6100 + chunk % 911, 2100 + chunk % 313, 0)
    journal.record("day", events.ChunkCommitted(chunk, 0, f"{chunk * 2654435761 % 2**128:032x}", 0, timings))
    if chunk % per_s == 0:
        journal.record("day", events.FramesShown("ann", chunk, chunk + per_s - 1))


async def _caught_up(journal: "Journal") -> None:
    """Time goes no faster than store and archive: in ten seconds of the room they would have done long since."""
    while (now := journal.counters()).buffered > BACKLOG_MOST or now.hot_bytes > HOT_MOST:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    await asyncio.sleep(0)
