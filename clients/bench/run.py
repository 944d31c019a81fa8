"""`worldroom bench`: which rows there are, the servers they start, and the report. Under five minutes for all of it."""

import os
import platform
import random

import msgspec
from rich.console import Group
from rich.table import Table

from ..python.latency import LatencySpread
from ..python.measure import JoinFailed
from ..python.signalling import NoServer, RoomRefused
from . import memory as memory_row
from .cells import (
    DriveCell,
    FanoutCell,
    JoinCell,
    LatencyCell,
    measure_drive,
    measure_fanout,
    measure_join,
    measure_latency,
)
from .server import ServerFailed, served, serving

ROWS = ("latency", "fanout", "join", "drive")
LONG_ROWS = ("memory",)
"""Measured only when asked for: they mean something after minutes."""
FAST_FPS = 240


class BenchFailed(RuntimeError):
    """A row could not be measured; the message says which and why."""


class BenchReport(msgspec.Struct, frozen=True):
    """None = the row was not asked for. `load`: the machine's 1-minute load average at the start and at the end.

    latency: toy at 0 ms and 24 fps. latency_fast: the same at a high frame rate, where waiting for a slot is short.
    """

    machine: str
    cores: int
    load: tuple[float, float]
    seconds: float
    seed: int
    latency: LatencyCell | None
    latency_fast: LatencyCell | None
    fanout: FanoutCell | None
    join: JoinCell | None
    drive: DriveCell | None
    memory: memory_row.MemoryCell | None = None


async def run_bench(rows: tuple[str, ...], seconds: float = 8.0, seed: int = 0, card: str = "toy") -> BenchReport:
    """Measure the rows one after the other, each against a server of its own. Raises `BenchFailed`.

    `card`: the world of the memory row; the others have theirs.
    """
    load_before = os.getloadavg()[0]
    latency = latency_fast = fanout = join = drive = memory = None
    row = ""
    try:
        for row in rows:
            dice = random.Random(f"{seed} {row}")
            match row:
                case "latency":
                    with serving("toy") as base:
                        latency = await measure_latency(base, seconds, dice)
                    with serving("toy", "--option", f"fps={FAST_FPS}") as base:
                        latency_fast = await measure_latency(base, seconds, dice)
                case "fanout":
                    with serving("toy") as base:
                        fanout = await measure_fanout(base, seconds, dice)
                case "join":
                    with serving("toy", "--lease", "1", "--slots", "8") as base:
                        join = await measure_join(base, dice)
                case "drive":
                    with serving("drive") as base:
                        drive = await measure_drive(base, seconds, seed)
                case "memory":
                    with served(card) as server:
                        memory = await memory_row.measure_memory(server.base, server.pid, seconds, dice)
                case _:
                    raise BenchFailed(f"no row '{row}'; rows: {', '.join((*ROWS, *LONG_ROWS))}")
    except (ServerFailed, RoomRefused, NoServer, JoinFailed, ConnectionError) as error:
        raise BenchFailed(f"row {row}: {error}") from None
    return BenchReport(
        machine=_machine(),
        cores=os.cpu_count() or 0,
        load=(round(load_before, 2), round(os.getloadavg()[0], 2)),
        seconds=seconds,
        seed=seed,
        latency=latency,
        latency_fast=latency_fast,
        fanout=fanout,
        join=join,
        drive=drive,
        memory=memory,
    )


def table(report: BenchReport) -> Group:
    """The report for a person: every figure beside what it should be."""
    view = Table(title=f"worldroom bench on {report.cores} cores ({report.machine}), load {report.load[0]}")
    for heading in ("row", "figure", "p50", "p95", "p99", "should be"):
        view.add_column(heading, justify="left" if heading in ("row", "figure", "should be") else "right")
    for cell in (report.latency, report.latency_fast):
        if cell is not None:
            _add_latency(view, cell)
    if report.join is not None:
        _add(view, "join", "running room: join to first picture, ms", report.join.running_room_ms, "p95 <= 500")
        fresh = f"fresh room: the same, ms ({report.join.refusals} refusals)"
        _add(view, "", fresh, report.join.fresh_room_ms, "p95 <= 500")
    if (drive := report.drive) is not None:
        _add(view, "drive", f"{drive.fps:g} fps, frame interval, ms", drive.interval_ms, "24 fps, p99 within 25 %")
        _add(view, "", "motion to photon (Python client), ms", drive.motion_to_photon_ms, "p50 <= 60, p95 <= 100")
    tables = [view]
    if report.fanout is not None:
        tables.append(_fanout_table(report.fanout))
    if report.memory is not None:
        tables.append(memory_row.table(report.memory))
    return Group(*tables)


def _add_latency(view: Table, cell: LatencyCell) -> None:
    name = f"latency {cell.fps} fps"
    if cell.fps >= FAST_FPS:
        _add(view, name, "input received to packet sent, ms", cell.total_ms, "p50 <= 4, p95 <= 8")
    else:
        _add(view, name, "added by the server, ms", cell.added_ms, "p50 <= 4, p95 <= 8")
        _add(view, "", "waiting for the next frame's slot, ms", cell.hold_ms, "0 .. one frame")
    for figure, part in (("wait", cell.wait_ms), ("decode", cell.decode_ms), ("encode", cell.encode_ms)):
        _add(view, "", f"  {figure}, ms", part, "")
    _add(view, "", "  between the steps, for the playout time, to the edge, ms", cell.pace_ms, "")


def _fanout_table(cell: FanoutCell) -> Table:
    title = (
        f"fan-out: a further viewer costs {cell.each_more_ms:.2f} ms of CPU a frame: {cell.share:.1%} of encode + send "
        f"(should be <= 10 %), {cell.share_of_first:.1%} of all that the first one brings"
    )
    view = Table(title=title)
    for heading in ("viewers", "CPU, % of a core", "CPU, ms a frame", "driver's fps", "driver's interval p99, ms"):
        view.add_column(heading, justify="right")
    for point in cell.points:
        figures = (point.cpu_ms_per_frame, point.driver_fps, point.driver_interval_p99_ms)
        seen = [f"{figure:.1f}" for figure in figures] if point.viewers else []
        view.add_row(str(point.viewers), f"{point.cpu_percent:g}", *seen)
    return view


def _add(view: Table, row: str, figure: str, spread: LatencySpread, bound: str) -> None:
    view.add_row(row, figure, *(f"{value:.1f}" for value in (spread.p50, spread.p95, spread.p99)), bound)


def _machine() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        models = []
    return models[0] if models else platform.machine()
