"""`worldroom parity`: climb a card's parity ladder and say, check by check, how far ours is from the reference."""

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ..models.parity.ladder import ParityVerdict
from .errors import fail
from .output import JsonFlag, print_object


class ParityReport(msgspec.Struct, frozen=True):
    """`ok`: no check failed; skipped checks say why and fail nothing."""

    ok: bool
    verdicts: tuple[ParityVerdict, ...]


def parity(
    card: Annotated[str | None, typer.Argument(help="Name of the card; `worldroom cards list` shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every card whose weights are here.")] = False,
    slow: Annotated[bool, typer.Option("--slow", help="Also checks that take minutes (compiled blocks).")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Components, rollout and mixed batches against what was written apart. Exit status 1 when a check fails."""
    from ..models import catalog
    from ..models.parity.ladder import judge

    if (card is None) == (not every):
        raise fail("name one card, or say --all")
    verdicts: list[ParityVerdict] = []
    try:
        for name in catalog.names() if card is None else (card,):
            verdicts += [judge(name, check) for check in catalog.checks(name, slow)]
    except catalog.REFUSALS as error:
        raise fail(str(error)) from None
    if card is not None and not verdicts:
        raise fail(f"card '{card}' has no parity checks: its published size runs nowhere here; its tiny card does")
    report = ParityReport(all(verdict.ok for verdict in verdicts), tuple(verdicts))
    if as_json:
        print_object(report)
    else:
        console = Console()
        console.width = max(console.width, 150)
        console.print(_table(report.verdicts))
        for verdict in report.verdicts:
            if verdict.diverged is not None:
                off = verdict.diverged
                typer.echo(
                    f"{verdict.card} {verdict.level}: first diverges at step {off.step}, {off.block}, {off.probe}: "
                    f"max abs error {off.error:.3g}, tolerance {verdict.tolerance:.3g}"
                )
    raise typer.Exit(0 if report.ok else 1)


def _table(verdicts: tuple[ParityVerdict, ...]) -> Table:
    table = Table("card", "level", "what is compared", "max abs error", "tolerance", "probes", "verdict")
    for verdict in verdicts:
        figure = "-" if verdict.figure is None else f"{verdict.figure:.3g}"
        word = "skipped" if verdict.figure is None else "ok" if verdict.ok else "FAILS"
        said = f"{word}: {verdict.why}" if verdict.why else word
        table.add_row(
            verdict.card, verdict.level, verdict.subject, figure, f"{verdict.tolerance:.3g}", str(verdict.probes), said
        )
    return table
