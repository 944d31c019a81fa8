"""Journal, films and receipts, on against off: how much later frames come, and how much processor time that takes.

    block: rooms open -> settle -> [measured] -> rooms close        on, off, on, off, .. on one worker

A frame's lateness is how much after its playout time it reaches the viewers, beside the promptest frame of its room.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....clients.python.latency import LatencySpread, spread
from ....clock import SystemClock
from ....film import CLOCK
from ..stage import KEYS, SilentViewer
from .amounts import Amounts, cpu_seconds

if TYPE_CHECKING:
    from ....engine.api import Frame
    from ....engine.worker.client import WorkerClient
    from ....sessions.audience import FrameInput
    from ....sessions.journal.journal import Journal
    from ....sessions.rooms.participant import Participant
    from ....sessions.rooms.recording import RoomRecordings

SETTLE_S = 2.0
TAP_S = 0.25


class KeepingReport(msgspec.Struct, frozen=True):
    """`late_*_ms`: see the module docstring. `cpu_*`: of the edge and its Redis, as a share of one core; the worker is
    in neither."""

    rooms: int
    blocks: int
    seconds: float
    events_per_s: float
    frames: int
    film_bytes: int
    late_on_ms: LatencySpread
    late_off_ms: LatencySpread
    added_p95_ms: float
    cpu_on: float
    cpu_off: float
    added_cpu: float
    added_cpu_of_machine: float


@dataclass(slots=True)
class _ReceiptViewer(SilentViewer):
    """Also makes the receipts, as a viewer's connection does."""

    receipts: bool = True
    late: list[float] = field(default_factory=list)

    def frame(self, frame: "Frame", given: "FrameInput") -> None:
        from ....rtc.receipts import receipt_of
        from ....rtc.wire import encode

        now = asyncio.get_running_loop().time()
        if self.receipts:
            encode(receipt_of(frame, given, frame.pts & 0xFFFFFFFF, now))
        self.late.append(now - frame.pts / CLOCK)


@dataclass(slots=True)
class _Block:
    late: list[float]
    cpu: float
    events: int
    film_bytes: int


async def measure_overhead(amounts: Amounts) -> tuple[KeepingReport, ...]:
    """Raises `WorkerFailed`."""
    from ....engine.spec import EngineSpec
    from ....engine.worker.client import WorkerClient
    from ....engine.worker.spec import WorkerSpec

    worker = WorkerClient(WorkerSpec(("toy",), None, EngineSpec(slots=amounts.rooms)), SystemClock())
    await worker.start()
    try:
        blocks = [await _block(worker, amounts, number % 2 == 0) for number in range(2 * amounts.blocks)]
    finally:
        await worker.close()
    on, off = blocks[::2], blocks[1::2]
    wall = amounts.blocks * amounts.seconds
    late_on = spread([late * 1e3 for block in on for late in block.late])
    late_off = spread([late * 1e3 for block in off for late in block.late])
    cpu_on, cpu_off = (sum(block.cpu for block in each) / wall for each in (on, off))
    report = KeepingReport(
        rooms=amounts.rooms,
        blocks=amounts.blocks,
        seconds=amounts.seconds,
        events_per_s=round(sum(block.events for block in on) / wall, 1),
        frames=late_on.count,
        film_bytes=sum(block.film_bytes for block in on),
        late_on_ms=late_on,
        late_off_ms=late_off,
        added_p95_ms=round(late_on.p95 - late_off.p95, 3),
        cpu_on=round(cpu_on, 4),
        cpu_off=round(cpu_off, 4),
        added_cpu=round(cpu_on - cpu_off, 4),
        added_cpu_of_machine=round((cpu_on - cpu_off) / (os.cpu_count() or 1), 4),
    )
    return (report,)


async def _block(worker: "WorkerClient", amounts: Amounts, on: bool) -> _Block:
    from ....sessions.rooms.opener import RoomsSpec
    from ....sessions.rooms.participant import Participant
    from ....sessions.rooms.rooms import Rooms

    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="worldroom-bench-") as folder:
        async with _kept(Path(folder), on) as (journal, films, redis):
            rooms = Rooms(worker, journal, clock, RoomsSpec(card="toy"), recordings=films)
            viewers, drivers = [], []
            for number in range(amounts.rooms):
                viewer = _ReceiptViewer(receipts=on)
                driver = await rooms.join(f"room{number}", viewer, None, None)
                assert isinstance(driver, Participant), driver
                viewers.append(viewer)
                drivers.append(driver)
            hands = asyncio.create_task(_tap(drivers))
            await asyncio.sleep(SETTLE_S)
            for viewer in viewers:
                viewer.late.clear()
            cpu, events = _cpu(redis), journal.counters().recorded
            await asyncio.sleep(amounts.seconds)
            cpu, events = _cpu(redis) - cpu, journal.counters().recorded - events
            hands.cancel()
            late = [each - min(viewer.late) for viewer in viewers for each in viewer.late]
            await rooms.close()
        film_bytes = await asyncio.to_thread(_film_bytes, Path(folder))
    return _Block(late, cpu, events, film_bytes)


def _film_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.mp4*"))


@asynccontextmanager
async def _kept(folder: Path, on: bool) -> "AsyncIterator[tuple[Journal, RoomRecordings | None, int]]":
    """Journal with store, ring and archive, and films of every room, as a server has them; or nothing of it. With the
    process of the Redis."""
    from ....sessions.journal.archive import Archive
    from ....sessions.journal.archiver import Archiver
    from ....sessions.journal.journal import Journal
    from ....sessions.journal.redis_embedded import EmbeddedRedis
    from ....sessions.journal.ring import Ring
    from ....sessions.journal.streams import Streams
    from ....sessions.recording.recordings import Recordings
    from ....sessions.rooms.recording import RoomRecordings

    clock = SystemClock()
    if not on:
        yield _no_journal(clock), None, 0
        return
    redis = EmbeddedRedis(folder / "redis")
    redis.start()
    try:
        store = Streams(await redis.client(), 3600)
        archiver = Archiver(clock, store, Archive(folder / "archive"))
        journal = Journal.open(clock, store, folder / "spool", ring=Ring(folder / "ring"), archiver=archiver)
        recordings = Recordings(folder / "recordings", clock)
        yield journal, RoomRecordings(recordings, every=True), redis.pid or 0
        await journal.close()
        await recordings.close()
        await store.close()
    finally:
        redis.stop()


def _no_journal(clock: SystemClock) -> "Journal":
    """A journal that counts and keeps nothing."""
    from ....sessions.journal.entry import NOWHERE, Stamp
    from ....sessions.journal.events import JournalEvent
    from ....sessions.journal.journal import Journal

    class NoJournal(Journal):
        def record(self, session: str, event: JournalEvent, stamp: Stamp = NOWHERE) -> int:
            return 0

    return NoJournal(clock)


def _cpu(redis: int) -> float:
    return cpu_seconds(os.getpid()) + (cpu_seconds(redis) if redis else 0.0)


async def _tap(drivers: "list[Participant]") -> None:
    """Everybody presses and lets go, all the time."""
    from ....sessions.messages import Input, KeyEdge

    seq = 0
    while True:
        seq += 1
        down = seq % 2 == 1
        for number, driver in enumerate(drivers):
            key = KEYS[number % len(KEYS)]
            driver.receive(Input(seq, (key,) if down else (), (KeyEdge(seq, key, down),)))
        await asyncio.sleep(TAP_S)
