"""`worldroom bench overhead`: what the engine itself costs while a card's steps keep the device busy all the time.

    device   [ math ][gap][ math ][gap][ math ]      gap: result handed back, loops advanced, next batch chosen and sent
    loop     CPU time of the engine's event loop: everything of it that is not math and not encoding

The card's frame rate is set so high that nobody ever waits for a deadline; every session is background work.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ...clients.python.latency import LatencySpread, spread
from ...models.contract.cache import CacheView
from ...models.contract.loaded import LoadedCard
from ...models.contract.loop import StepKind
from ...models.contract.placement import REALTIME
from ..checkpoints import checkpoint_of
from ..errors import fail
from ..output import JsonFlag, print_object

ENDLESS_FPS = 1000
SETTLE_S = 1.0


class OverheadRow(msgspec.Struct, frozen=True):
    """So many sessions that always want more. `outside`: share of wall time in which no lane of the device did math.

    `gap_us`: from the end of one batch's math to the start of the next of the same lane. `loop_us`: CPU time of the
    event loop a batch.
    `loop_share`: that as a part of it and the math's CPU time together: what a machine busy with other things leaves
    alone.
    """

    sessions: int
    batches: int
    rows_per_batch: float
    frames_per_second: float
    math_ms: LatencySpread
    gap_us: LatencySpread
    loop_us: float
    loop_share: float
    outside: float


class OverheadReport(msgspec.Struct, frozen=True):
    card: str
    steps: int
    max_rows: int
    seconds: float
    rows: tuple[OverheadRow, ...]


@dataclass(frozen=True, slots=True)
class Math:
    """One batch: the lane's thread, when its math began and ended, its CPU seconds, its rows."""

    thread: int
    began: float
    ended: float
    cpu: float
    rows: int


@dataclass(slots=True)
class Timed:
    """A runtime that notes the math of every batch, whichever lane's thread it ran on."""

    inner: Any
    noted: list[Math] = field(default_factory=list)

    def allocate(self, slots: int) -> None:
        self.inner.allocate(slots)

    def execute(self, kind: StepKind, rows: Sequence[Any], views: Sequence[CacheView | None]) -> list[Any]:
        began, cpu = time.perf_counter(), time.thread_time()
        results: list[Any] = self.inner.execute(kind, rows, views)
        spent = time.thread_time() - cpu
        self.noted.append(Math(threading.get_ident(), began, time.perf_counter(), spent, len(rows)))
        return results

    def encode_prompt(self, text: str) -> object:
        return self.inner.encode_prompt(text)

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[Any, CacheView | None]]:
        rows: list[tuple[Any, CacheView | None]] = self.inner.warm_up_rows(kind, count)
        return rows


def bench_overhead(
    card: Annotated[str, typer.Argument(help="The card whose math keeps the device busy.")] = "drive",
    sessions: Annotated[list[int] | None, typer.Option(help="So many sessions at once; may be repeated.")] = None,
    steps: Annotated[int | None, typer.Option(help="Denoise steps of a chunk; default: the card's.")] = None,
    max_rows: Annotated[int, typer.Option(min=1, max=16, help="Rows of one batch.")] = 4,
    seconds: Annotated[float, typer.Option(min=1, help="Measuring time of each row.")] = 8.0,
    beside: Annotated[bool, typer.Option(help="Leave beside the device what the card's program runs there.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Microseconds between two batches, and the share of time outside the model's math, at 1, 4 and 8 sessions."""
    from ...models import catalog
    from ...models.weights import WeightsError

    try:
        loaded = catalog.load(card, checkpoint=checkpoint_of(card, None))
    except (*catalog.REFUSALS, WeightsError, ImportError) as error:
        raise fail(str(error)) from None
    counts = tuple(sorted(sessions or (1, 4, 8)))
    report = asyncio.run(measure(loaded, counts, steps or loaded.choice.steps, max_rows, seconds, beside))
    if as_json:
        print_object(report)
    else:
        Console().print(table(report))


async def measure(
    loaded: LoadedCard, counts: Sequence[int], steps: int, max_rows: int, seconds: float, beside: bool = False
) -> OverheadReport:
    """One engine; sessions are added until each count is reached, and each is measured for `seconds`."""
    from ...clock import SystemClock
    from ...engine.engine import Engine
    from ...engine.spec import EngineSpec

    timed = Timed(loaded.runtime)
    frame = replace(loaded.card.frame, fps=ENDLESS_FPS)
    program = loaded.card.program if beside else REALTIME  # one lane: gaps between batches are those of one thread
    endless = replace(loaded, card=replace(loaded.card, frame=frame, program=program), runtime=timed)
    engine = Engine((endless,), SystemClock(), EngineSpec(slots=max(counts), max_rows=max_rows, share_cap=1.0))
    await engine.start()
    rows, opened = [], 0
    try:
        for count in counts:
            for number in range(opened, count):
                await _join(engine, endless, f"s{number}", steps)
            opened = count
            await asyncio.sleep(SETTLE_S)
            rows.append(await _row(engine, timed, count, seconds))
    finally:
        await engine.close()
    return OverheadReport(loaded.card.name, steps, max_rows, seconds, tuple(rows))


async def _join(engine: Any, loaded: LoadedCard, session: str, steps: int) -> None:
    """A session that answers every due chunk at once with nothing pressed."""
    from ...engine import api

    controls = (0.0,) * len(loaded.card.controls)
    keyed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def hear(event: api.Event) -> None:
        if isinstance(event, api.PromptEncoded):
            keyed.set_result(event.key)
        elif isinstance(event, api.ChunkDue) and keyed.done():
            shares = (api.PromptShare(keyed.result(), 1.0),)
            engine.post(api.Begin(session, event.chunk, api.Conditions(0, controls, (0.0, 0.0), shares, 1, 0)))

    opening = api.Open(session, loaded.card.name, 1, api.LatencyClass.BACKGROUND, steps=steps)
    answer = await engine.open(opening, hear)
    if isinstance(answer, api.Refused):
        raise fail(f"session {session} is refused: {answer.detail}")
    engine.post(api.Pause(session))
    engine.post(api.EncodePrompt(session, 1, loaded.card.suggestions[0]))
    await keyed
    engine.post(api.Resume(session))


async def _row(engine: Any, timed: Timed, sessions: int, seconds: float) -> OverheadRow:
    timed.noted.clear()
    chunks, cpu, began = engine.capacity()[0].chunks_done, time.thread_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    took, cpu = time.perf_counter() - began, time.thread_time() - cpu
    chunks, noted = engine.capacity()[0].chunks_done - chunks, [*timed.noted]
    math_cpu = sum(math.cpu for math in noted)
    return OverheadRow(
        sessions=sessions,
        batches=len(noted),
        rows_per_batch=round(sum(math.rows for math in noted) / max(1, len(noted)), 2),
        frames_per_second=round(chunks * engine.cards()[0].frames_per_chunk / took, 1),
        math_ms=spread([(math.ended - math.began) * 1e3 for math in noted]),
        gap_us=spread([gap * 1e6 for gap in gaps(noted)]),
        loop_us=round(cpu / max(1, len(noted)) * 1e6, 1),
        loop_share=round(cpu / (cpu + math_cpu), 4),
        outside=round(1 - covered(noted) / took, 4),
    )


def gaps(noted: Sequence[Math]) -> list[float]:
    """Seconds between one batch and the next of the same lane."""
    last: dict[int, float] = {}
    gaps = []
    for math in sorted(noted, key=lambda math: math.began):
        if math.thread in last:
            gaps.append(math.began - last[math.thread])
        last[math.thread] = math.ended
    return gaps


def covered(noted: Sequence[Math]) -> float:
    """Seconds in which any lane did math."""
    covered, until = 0.0, 0.0
    for math in sorted(noted, key=lambda math: math.began):
        covered += max(0.0, math.ended - max(until, math.began))
        until = max(until, math.ended)
    return covered


def table(report: OverheadReport) -> Table:
    title = f"{report.card}, {report.steps} steps, at most {report.max_rows} rows a batch, {report.seconds:g} s a row"
    shown = Table(title=title, title_justify="left")
    for heading in (
        "sessions",
        "batches",
        "rows",
        "fps",
        "math ms p50",
        "gap µs p50 / p95",
        "loop µs",
        "loop of CPU",
        "outside math",
    ):
        shown.add_column(heading, justify="right")
    for row in report.rows:
        shown.add_row(
            str(row.sessions),
            str(row.batches),
            f"{row.rows_per_batch:g}",
            f"{row.frames_per_second:g}",
            f"{row.math_ms.p50:.2f}",
            f"{row.gap_us.p50:.0f} / {row.gap_us.p95:.0f}",
            f"{row.loop_us:.0f}",
            f"{row.loop_share:.1%}",
            f"{row.outside:.1%}",
        )
    return shown
