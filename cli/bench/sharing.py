"""`worldroom bench sharing`: what it costs that rows of several people share a pass and keep the bits they have alone.

One denoise step of Wan at a full window, on one thread: a pass for each row, one plain pass, and one pass in the
invariant form. The three take turns in every round, so they share the machine's moods. A ratio is the invariant form's
time as a share of another's: the median over rounds, and that of the shortest times.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ...clients.python.latency import LatencySpread, spread
from ...clock import SystemClock
from ..output import JsonFlag, print_object

if TYPE_CHECKING:
    from ...models.wan.spec import WanSpec


class SharingRow(msgspec.Struct, frozen=True):
    """So many rows of one network. `ratio_*`: medians over rounds; `least_*`: of the shortest times."""

    network: str
    rows: int
    alone_ms: LatencySpread
    plain_ms: LatencySpread
    invariant_ms: LatencySpread
    ratio_alone: float
    ratio_plain: float
    least_alone: float
    least_plain: float


class SharingReport(msgspec.Struct, frozen=True):
    rounds: int
    rows: tuple[SharingRow, ...]


def bench_sharing(
    rows: Annotated[list[int] | None, typer.Option(min=1, max=16, help="Rows of a pass; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(min=3, help="Timed rounds of each.")] = 18,
    as_json: JsonFlag = False,
) -> None:
    """Milliseconds of 1, 4 and 8 rows: row by row, in one plain pass, and in one pass that keeps every row's bits."""
    import torch

    torch.set_num_threads(1)
    report = measure(tuple(rows or (1, 4, 8)), rounds)
    if as_json:
        print_object(report)
    else:
        console = Console()
        console.width = max(console.width, 130)
        console.print(table(report))


def measure(counts: Sequence[int], rounds: int) -> SharingReport:
    """The tiny network and one of dim 384, six layers and 48 tokens a frame."""
    from ...models.wan.card import SPECS
    from ...models.wan.spec import WanShape

    tiny = SPECS["wan-tiny-random"]
    middle = WanShape(
        dim=384, heads=6, layers=6, ffn=1536, text_dim=64, text_length=64, freq_dim=64, rows=12, columns=16
    )
    networks = (("tiny", tiny), ("dim 384", replace(tiny, shape=middle)))
    return SharingReport(rounds, tuple(_row(name, spec, rows, rounds) for name, spec in networks for rows in counts))


def _row(name: str, spec: "WanSpec", rows: int, rounds: int) -> SharingRow:
    """All three ways, interleaved."""
    import torch

    from ...models.contract.loop import StepKind
    from ...models.wan import random_weights
    from ...models.wan.rows import Sharing
    from ...models.wan.runtime import WanRuntime

    clock, ways = SystemClock(), [*Sharing]
    took: dict[Sharing, list[float]] = {sharing: [] for sharing in Sharing}
    runtimes = {}
    for sharing in Sharing:
        runtimes[sharing] = WanRuntime(spec, random_weights.networks(spec, torch.float32), torch.float32, sharing)
        runtimes[sharing].allocate(rows)
    given = runtimes[Sharing.PLAIN].warm_up_rows(StepKind.DENOISE, rows)
    asked, views = [row for row, _ in given], [view for _, view in given]
    for turn in range(-1, rounds):
        for sharing in ways[turn % 3 :] + ways[: turn % 3]:
            started = clock.now()
            runtimes[sharing].execute(StepKind.DENOISE, asked, views)
            if turn >= 0:
                took[sharing].append((clock.now() - started) * 1000)
    alone, plain, ours = took[Sharing.ALONE], took[Sharing.PLAIN], took[Sharing.INVARIANT]
    return SharingRow(
        name,
        rows,
        spread(alone),
        spread(plain),
        spread(ours),
        ratio_alone=round(median(a / b for a, b in zip(ours, alone, strict=True)), 3),
        ratio_plain=round(median(a / b for a, b in zip(ours, plain, strict=True)), 3),
        least_alone=round(min(ours) / min(alone), 3),
        least_plain=round(min(ours) / min(plain), 3),
    )


def table(report: SharingReport) -> Table:
    shown = Table(title=f"{report.rounds} rounds, ms min / p50 / max; ratio (of the least)", title_justify="left")
    for heading in (
        "network",
        "rows",
        "row by row",
        "one plain pass",
        "one invariant pass",
        "to row by row",
        "to plain",
    ):
        shown.add_column(heading, justify="left" if heading == "network" else "right")
    for row in report.rows:
        spreads = (
            f"{ms.min:.2f} / {ms.p50:.2f} / {ms.max:.2f}" for ms in (row.alone_ms, row.plain_ms, row.invariant_ms)
        )
        ratios = (f"{row.ratio_alone:.2f} ({row.least_alone:.2f})", f"{row.ratio_plain:.2f} ({row.least_plain:.2f})")
        shown.add_row(row.network, str(row.rows), *spreads, *ratios)
    return shown
