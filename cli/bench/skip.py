"""`worldroom bench skip`: what `drive` saves by skipping last passes, and how far off its frames are then."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..errors import fail
from ..output import JsonFlag, print_object

if TYPE_CHECKING:
    from ...training.drive.skipping import Quantiles, SkipReport


def bench_skip(
    steps: Annotated[list[int] | None, typer.Option(min=2, help="Denoise steps; may be repeated.")] = None,
    below: Annotated[list[float] | None, typer.Option(help="Thresholds; default: the shipped one.")] = None,
    worlds: Annotated[int, typer.Option(min=1, help="Worlds; sixty begin in all sixty looks.")] = 60,
    frames: Annotated[int, typer.Option(min=2, help="Frames of each.")] = 24,
    as_json: JsonFlag = False,
) -> None:
    """Passes skipped, time saved, errors of frames from the same states. Exit status 1 beyond the recipe's bound."""
    from ...models.contract.recipe import RecipeMismatch
    from ...models.drive.card import RECIPE
    from ...models.drive.skip import SKIP_BELOW
    from ...models.weights import WeightsError
    from ...training.drive.skipping import measure

    counts = steps or [count for count in RECIPE.steps_allowed() if count > 1]
    with Progress(transient=True, disable=as_json) as bars:
        task = bars.add_task("driving", total=len(counts) * len(below or [0]) * worlds * frames)
        try:
            report = measure(counts, below or [SKIP_BELOW], worlds, frames, lambda done: bars.advance(task, done))
        except (RecipeMismatch, WeightsError) as error:
            raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        console = Console()
        console.width = max(console.width, 130)
        console.print(_table(report))
    failures = report.failures()
    for failure in failures:
        typer.secho(failure, fg=typer.colors.RED, err=True)
    raise typer.Exit(1 if failures else 0)


def _table(report: "SkipReport") -> Table:
    title = (
        f"{report.worlds} worlds of {report.frames_per_world} frames; errors of at most {report.bound:g} are declared"
    )
    table = Table(title=title, title_justify="left", caption="min / median / p95 / max", caption_justify="left")
    for heading in ("steps", "below", "frames that skip", "denoise time saved", "residual", "error", "error, rms"):
        table.add_column(heading, justify="right")
    for row in report.rows:
        spreads = (_spread(quantiles) for quantiles in (row.residual, row.error, row.error_rms))
        table.add_row(str(row.steps), f"{row.below:g}", f"{row.skipped:.1%}", f"{row.saved:.1%}", *spreads)
    return table


def _spread(quantiles: "Quantiles") -> str:
    return " / ".join(f"{value:.3f}" for value in (quantiles.min, quantiles.median, quantiles.p95, quantiles.max))
