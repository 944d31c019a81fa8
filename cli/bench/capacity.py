"""`worldroom bench capacity`: how many sessions of a card this machine holds at the card's own pace.

    one more room -> settle -> measure everybody -> in SLO? -> one more room .. until one is refused

In SLO is a session whose chunks were late in at most one case of a hundred and that got its frame rate within one per
cent. One edge in this process without a network: worker processes, encoders, rooms and journal are the server's own.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ...clock import SystemClock
from ..errors import fail
from ..options import OptionFlag, options_of
from ..output import JsonFlag, print_object

if TYPE_CHECKING:
    from ...engine.api import EngineClient

SETTLE_S = 1.0
LATE_MOST, SLOW_MOST = 0.01, 0.01


class CapacityRow(msgspec.Struct, frozen=True):
    """Everybody with so many sessions in: the least frame rate and the largest share of late chunks of any of them."""

    sessions: int
    within: int
    fps_min: float
    late_max: float
    price_ms: float


class CapacityReport(msgspec.Struct, frozen=True):
    """`held`: the most sessions that were in at once and all within SLO. `refused`: what the next one was told."""

    card: str
    workers: int
    fps: int
    seconds: float
    held: int
    refused: str
    rows: tuple[CapacityRow, ...]


def bench_capacity(
    card: Annotated[str, typer.Argument(help="The card of every room.")] = "drive",
    workers: Annotated[int, typer.Option(min=1, max=16, help="Worker processes.")] = 1,
    most: Annotated[int, typer.Option(min=1, max=64, help="Rooms at most.")] = 8,
    seconds: Annotated[float, typer.Option(min=1, help="Measuring time of each count.")] = 8.0,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Sessions that are admitted one after the other until one is refused; all of them measured each time."""
    from ...engine.worker.client import WorkerFailed

    try:
        report = asyncio.run(measure(card, workers, most, seconds, options_of(option)))
    except WorkerFailed as failed:
        raise fail(str(failed)) from None
    if as_json:
        print_object(report)
    else:
        Console().print(table(report))


async def measure(
    card: str, workers: int, most: int, seconds: float, given: Mapping[str, str] | None = None
) -> CapacityReport:
    """Raises `WorkerFailed`."""
    from ...engine.spec import EngineSpec
    from ...engine.worker.devices import AUTO, named
    from ...engine.worker.pool import WorkerPool
    from ...engine.worker.spec import WorkerSpec
    from ...models import catalog
    from ...sessions.rooms.opener import RoomsSpec
    from ..assemble import workers as on_devices
    from .stage import SilentViewer, seats, staged

    clock = SystemClock()
    options = catalog.options(card, given or {})
    serving = WorkerSpec((card,), None, EngineSpec(slots=most), options={card: options})
    door = WorkerPool(on_devices(serving, named(AUTO, workers), clock))
    rows: list[CapacityRow] = []
    refused = ""
    async with staged(door, clock, RoomsSpec(card=card)) as stage:
        fps = door.cards()[0].fps
        async for seat in seats(stage.rooms, most):
            if isinstance(seat, SilentViewer):
                await asyncio.sleep(SETTLE_S)
                rows.append(await _row(door, fps, seconds))
            else:
                refused = seat.detail
    held = max((row.sessions for row in rows if row.within == row.sessions), default=0)
    return CapacityReport(card, workers, fps, seconds, held, refused, tuple(rows))


async def _row(door: "EngineClient", fps: int, seconds: float) -> CapacityRow:
    """Everybody who is in, over `seconds` (and the tenth of a second that the worker's figures are old at most)."""
    before, began = {info.session: info for info in door.sessions()}, asyncio.get_running_loop().time()
    await asyncio.sleep(seconds)
    after, took = door.sessions(), asyncio.get_running_loop().time() - began
    rates, lates = [], []
    for info in after:
        was = before.get(info.session)
        frames, chunks, late = (was.frames, was.chunks, was.late) if was else (0, 0, 0)
        rates.append((info.frames - frames) / took)
        lates.append((info.late - late) / max(1, info.chunks - chunks))
    slow = (1 - SLOW_MOST) * fps - 2 / took  # both figures may be a tenth of a second, two frames, old
    within = sum(rate >= slow and late <= LATE_MOST for rate, late in zip(rates, lates, strict=True))
    price = max(entry.price_us for entry in door.cards()) / 1000
    return CapacityRow(len(after), within, round(min(rates), 2), round(max(lates), 4), price)


def table(report: CapacityReport) -> Table:
    said = f"the next: {report.refused}" if report.refused else "no one was refused"
    title = f"{report.card} on {report.workers} workers holds {report.held} sessions at {report.fps} fps; {said}"
    shown = Table(title=title, title_justify="left")
    for heading in ("sessions", "within SLO", "least fps", "most late", "price ms"):
        shown.add_column(heading, justify="right")
    for row in report.rows:
        figures = (f"{row.fps_min:g}", f"{row.late_max:.1%}", f"{row.price_ms:.1f}")
        shown.add_row(str(row.sessions), str(row.within), *figures)
    return shown
