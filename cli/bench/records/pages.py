"""The library's list at many sessions: its first page, the next ones, and what the loop notices of it."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....clients.python.latency import LatencySpread, spread
from ....clock import SystemClock
from .amounts import Amounts

if TYPE_CHECKING:
    from ....sessions.journal.archive import Archive

PAGES = 40
LIMIT = 24
PROBE_S = 0.001


class ListReport(msgspec.Struct, frozen=True):
    """`first_ms`: of a server that has read none of them yet. `loop_ms`: how much later than asked for the event loop
    was while pages were made."""

    sessions: int
    first_ms: float
    page_ms: LatencySpread
    loop_ms: LatencySpread


async def measure_pages(amounts: Amounts) -> tuple[ListReport, ...]:
    from ....sessions.journal.archive import Archive
    from ....sessions.journal.disk import DiskStore
    from ....sessions.journal.history import History
    from ....sessions.library.library import Library
    from ....sessions.recording.recordings import Recordings

    with tempfile.TemporaryDirectory(prefix="worldroom-bench-") as folder:
        archive = Archive(Path(folder) / "archive")
        await asyncio.to_thread(_fill, archive, amounts.listed)
        store = DiskStore(Path(folder) / "journal")
        library = Library(History(store, archive), Recordings(Path(folder) / "recordings", SystemClock()))
        began = time.perf_counter()
        first = await library.page(0, LIMIT)
        first_ms = (time.perf_counter() - began) * 1e3
        assert first.total == amounts.listed, first.total
        late: list[float] = []
        probe, times = asyncio.create_task(_probe(late)), []
        for number in range(PAGES):
            began = time.perf_counter()
            await library.page(number * (amounts.listed // PAGES), LIMIT, "toy" if number % 2 else None)
            times.append((time.perf_counter() - began) * 1e3)
        probe.cancel()
    return (ListReport(amounts.listed, round(first_ms, 1), spread(times), spread(late)),)


def _fill(archive: "Archive", count: int) -> None:
    from ....sessions.journal.archive import VERSION, Index, PartInfo

    for number in range(count):
        opened = 1_796_000_000.0 + 60 * number
        part = PartInfo(1, 9000, opened, opened + 180, 400_000, f"{number:064x}")
        card, counts = ("toy", "drive")[number % 3 == 0], {"session.opened": 1, "chunk.committed": 4000}
        index = Index(VERSION, f"{number:016x}", f"room-{number % 500}", card, opened, (part,), 0, True, counts, 2, 1)
        archive.put_index(index)


async def _probe(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(PROBE_S)
        late.append((time.perf_counter() - began - PROBE_S) * 1e3)
