"""Does the server's memory stay flat? Resident bytes of each of its processes while one driver drives. Linux only.

The journal's server keeps a session's events in memory, so it grows by what was journaled; edge and worker must not.
"""

import asyncio
import random
from pathlib import Path
from statistics import mean

import msgspec
from rich.table import Table

from ..python.measure import Observation, press_at_random
from ..python.room import join

SETTLE_S = 90.0
"""Until the rings are full: packets kept for retransmission, steps kept for the trace."""
EVERY_S = 2.0
MIB = 1 << 20


class ProcessMemory(msgspec.Struct, frozen=True):
    """MiB resident. `tenths`: means of each tenth of the time; `growth`: from the first to the last, in percent."""

    process: str
    tenths: tuple[float, ...]
    low: float
    high: float
    growth: float


class MemoryCell(msgspec.Struct, frozen=True):
    """`frames` as the driver saw them. `server`: edge and worker together."""

    card: str
    seconds: float
    frames: int
    server: ProcessMemory
    processes: tuple[ProcessMemory, ...]


async def measure_memory(base: str, pid: int, seconds: float, dice: random.Random) -> MemoryCell:
    """Drive for `seconds` once everything has been touched, and look every two seconds. `pid`: the edge's."""
    samples: list[dict[str, int]] = []
    async with join(f"{base}/r/memory", loopback=True, decode=False, seed=dice.getrandbits(30)) as room:
        driving = asyncio.create_task(
            press_at_random(room, Observation(), SETTLE_S + seconds + EVERY_S, dice)  # it ends after us
        )
        try:
            await asyncio.sleep(SETTLE_S)
            before = room.latency.frames
            for _ in range(max(2, round(seconds / EVERY_S))):
                samples.append(resident(pid))
                await asyncio.sleep(EVERY_S)
            frames = room.latency.frames - before
        finally:
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)
        assert room.welcome is not None
        card = room.welcome.card
    names = samples[0].keys()
    processes = tuple(course(name, [sample.get(name, 0) for sample in samples]) for name in names)
    server = course("edge + worker", [sum(sample.values()) - sample.get("redis", 0) for sample in samples])
    return MemoryCell(card, seconds, frames, server, processes)


def course(process: str, samples: list[int]) -> ProcessMemory:
    """What became of a process in these samples (bytes, oldest first)."""
    tenth = max(1, len(samples) // 10)
    means = [mean(samples[at : at + tenth]) / MIB for at in range(0, tenth * min(10, len(samples)), tenth)]
    growth = 100 * (means[-1] - means[0]) / means[0] if means[0] else 0.0
    return ProcessMemory(
        process,
        tuple(round(figure, 2) for figure in means),
        low=round(min(samples) / MIB, 2),
        high=round(max(samples) / MIB, 2),
        growth=round(growth, 2),
    )


def resident(edge: int) -> dict[str, int]:
    """Bytes resident of the edge and of what it started, by what each is; workers beyond the first have a number."""
    found = {"edge": _resident(edge)}
    workers = 0
    for child in children(edge):
        redis = "valkey" in _command(child)
        workers += not redis
        found["redis" if redis else "worker" if workers == 1 else f"worker {workers}"] = _resident(child)
    return found


def children(parent: int) -> list[int]:
    """Processes that it started."""
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def table(cell: MemoryCell) -> Table:
    """For a person; edge and worker should stay within 2 percent."""
    view = Table(title=f"memory of `{cell.card}`, one driver, {cell.seconds:g} s, {cell.frames} frames")
    for heading in ("process", "first, MiB", "last, MiB", "low", "high", "growth, %", "should be"):
        view.add_column(heading, justify="right")
    for row in (cell.server, *cell.processes):
        wanted = "the journal's events" if row.process == "redis" else "-2 .. 2"
        figures = (row.tenths[0], row.tenths[-1], row.low, row.high, row.growth)
        view.add_row(row.process, *(f"{figure:.2f}" for figure in figures), wanted)
    return view
