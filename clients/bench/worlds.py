"""How the tiny worlds of every family play live: frames a chunk, and how evenly they come although made at once.

Jitter is that of RFC 3550 (section 6.4.1) without its smoothing: how far arrival intervals are from the intervals of
the frames' own timestamps, on average, as a share of the frame interval.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec
from rich.table import Table

from ..python.latency import LatencySpread, spread
from ..python.pictures import RoomFrame
from ..python.room import join
from .server import serving

SETTLE_S = 2.0
CLOCK = 90_000
WRAP = 2**32
JITTER_MAX = 0.05


class WorldCell(msgspec.Struct, frozen=True):
    """One card behind a server of its own, watched from its first frame on.

    `opening`, `chunk`: frames of a world's first chunk and of every later one, as they arrived; `odd_chunks`: later
    ones of another length. `spacing_ms`: distance of timestamps, `arrival_ms`: of arrivals. `jitter` < 0.05.
    """

    card: str
    fps: int
    opening: int
    chunk: int
    odd_chunks: int
    frames: int
    spacing_ms: LatencySpread
    arrival_ms: LatencySpread
    jitter: float
    step_ms: LatencySpread


class WorldsReport(msgspec.Struct, frozen=True):
    """`load`: the machine's 1-minute load average at the start and at the end."""

    seconds: float
    load: tuple[float, float]
    worlds: tuple[WorldCell, ...]


def measure_worlds(cards: Sequence[str], seconds: float) -> WorldsReport:
    """Play each card for so long after it has settled; raises what `serving` and `join` raise."""
    before, cells = os.getloadavg()[0], []
    for card in cards:
        with serving(card) as base:
            cells.append(asyncio.run(_watch(f"{base}/r/{card}", seconds)))
    return WorldsReport(seconds, (round(before, 2), round(os.getloadavg()[0], 2)), tuple(cells))


def table(report: WorldsReport) -> Table:
    """The report for a person."""
    before, after = report.load
    view = Table(title=f"{report.seconds:g} s each, load {before} to {after}; jitter should be below {JITTER_MAX:.0%}")
    for heading in ("card", "fps", "first", "chunk", "odd", "frames", "arrival p50 / p99, ms", "jitter", "step, ms"):
        view.add_column(heading, justify="left" if heading == "card" else "right")
    for cell in report.worlds:
        counts = (cell.fps, cell.opening, cell.chunk, cell.odd_chunks, cell.frames)
        arrival = f"{cell.arrival_ms.p50:.1f} / {cell.arrival_ms.p99:.1f}"
        view.add_row(cell.card, *map(str, counts), arrival, f"{cell.jitter:.1%}", f"{cell.step_ms.p50:.1f}")
    return view


async def _watch(url: str, seconds: float) -> WorldCell:
    arrived: list[tuple[float, int]] = []
    chunks: Counter[int] = Counter()
    step_ms: dict[int, float] = {}

    def joined(frame: RoomFrame) -> None:
        if frame.receipt is not None:
            chunks[frame.receipt.chunk] += 1
            step_ms[frame.receipt.chunk] = frame.receipt.step_us / 1000

    async with join(url, loopback=True, decode=False) as room:
        assert room.welcome is not None
        room.pictures.on_joined = joined
        await asyncio.sleep(SETTLE_S)
        loop = asyncio.get_running_loop()
        room.pictures.tap_frame = lambda rtp, data, key: arrived.append((loop.time(), rtp))
        await asyncio.sleep(seconds)
        fps, card = room.welcome.fps, room.welcome.card
    counts = [chunks[number] for number in sorted(chunks)]
    later = Counter(counts[1:-1])
    usual = later.most_common(1)[0][0] if later else 0
    spacing, arrival = _intervals(arrived)
    return WorldCell(
        card=card,
        fps=fps,
        opening=counts[0] if counts else 0,
        chunk=usual,
        odd_chunks=sum(number for size, number in later.items() if size != usual),
        frames=len(arrived),
        spacing_ms=spread(spacing),
        arrival_ms=spread(arrival),
        jitter=round(jitter(arrived, fps), 4),
        step_ms=spread(list(step_ms.values())),
    )


def jitter(arrived: list[tuple[float, int]], fps: int) -> float:
    """Of (seconds, 90 kHz timestamp) pairs, as a share of the frame interval; see the module docstring."""
    off = [abs(after - stamped) for stamped, after in zip(*_intervals(arrived), strict=True)]
    return sum(off) / len(off) * fps / 1000 if off else 0.0


def _intervals(arrived: list[tuple[float, int]]) -> tuple[list[float], list[float]]:
    """Between neighbours, in ms: of timestamps, and of arrivals."""
    spacing = [((after - before) % WRAP) * 1000 / CLOCK for (_, before), (_, after) in pairwise(arrived)]
    return spacing, [(after - before) * 1000 for (before, _), (after, _) in pairwise(arrived)]
