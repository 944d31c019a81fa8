"""`worldroom bench link`: what the socket of a worker adds to a message, in microseconds.

Both ends on one loop, so a figure is the work of both processes together: encode, write, read, decode.
"""

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ...clients.python.latency import LatencySpread, spread
from ...clock import SystemClock
from ..output import JsonFlag, print_object

if TYPE_CHECKING:
    from ...engine.worker import ipc

SESSION = "0123456789abcdef"


class LinkRow(msgspec.Struct, frozen=True):
    """One message from `send` to `hear`, nothing else under way."""

    message: str
    us: LatencySpread


class LinkReport(msgspec.Struct, frozen=True):
    frame_bytes: int
    rows: tuple[LinkRow, ...]


def bench_link(
    count: Annotated[int, typer.Option(min=1, help="Messages of each kind.")] = 2000,
    frame_bytes: Annotated[int, typer.Option(min=0, help="Bytes of an encoded frame.")] = 12_000,
    as_json: JsonFlag = False,
) -> None:
    """Microseconds of `Begin`, a frame and `ChunkDue` across the socket between the edge and its worker."""
    report = asyncio.run(measure(count, frame_bytes))
    if as_json:
        print_object(report)
    else:
        Console().print(table(report))


async def measure(count: int, frame_bytes: int) -> LinkReport:
    """The messages of one chunk, each kind `count` times."""
    from ...engine import api

    pressed = (0.0, 1.0, 0.0, 0.0)
    conditions = api.Conditions(0, pressed, (0.0, 0.0), (api.PromptShare("k" * 32, 1.0),), 1, 42)
    timings = api.Timings(100, 5000, 2000, 900)
    data = os.urandom(frame_bytes)
    frame = api.Frame(SESSION, 7, 7, 0, 26250, False, data, 42, 1, pressed, 1.0, timings)
    begin, due = api.Begin(SESSION, 7, conditions), api.ChunkDue(SESSION, 7, 1.0)
    rows = (
        LinkRow("Begin", await _across(begin, count, to_edge=False)),
        LinkRow("Frame", await _across(frame, count, to_edge=True)),
        LinkRow("ChunkDue", await _across(due, count, to_edge=True)),
    )
    return LinkReport(frame_bytes, rows)


async def _across(message: "ipc.ToWorker | ipc.ToEdge", count: int, to_edge: bool) -> LatencySpread:
    from ...engine.worker import ipc

    clock, heard = SystemClock(), asyncio.Event()
    one, other = socket.socketpair()
    edge = await ipc.edge_end(one, lambda _: heard.set(), lambda: None)
    worker = await ipc.worker_end(other, lambda _: heard.set(), lambda: None)
    took = []
    for _ in range(count):
        heard.clear()
        started = clock.now()
        (worker if to_edge else edge).send(message)
        await heard.wait()
        took.append((clock.now() - started) * 1e6)
    edge.close()
    worker.close()
    return spread(took)


def table(report: LinkReport) -> Table:
    shown = Table(title=f"The worker's socket, a frame of {report.frame_bytes:,} bytes", title_justify="left")
    for heading in ("message", "min us", "p50 us", "p95 us", "max us"):
        shown.add_column(heading, justify="left" if heading == "message" else "right")
    for row in report.rows:
        shown.add_row(row.message, *(f"{us:.0f}" for us in (row.us.min, row.us.p50, row.us.p95, row.us.max)))
    return shown
