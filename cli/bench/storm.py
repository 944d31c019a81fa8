"""`worldroom bench storm`: very many people come at once, and the rooms that play go on."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import fail
from ..output import JsonFlag, print_object

if TYPE_CHECKING:
    from ...clients.bench.storm import StormReport

UNLIMITED = (
    *("--offers-per-s", "1000", "--offers-burst", "9999", "--requests-per-s", "1000", "--requests-burst", "9999"),
    *("--seats", "256", "--address-viewers", "256"),
)


def bench_storm(
    rooms: Annotated[int, typer.Option(min=1, max=16, help="Worlds, each with a driver.")] = 8,
    offers: Annotated[int, typer.Option(min=1, max=230, help="People who come at once.")] = 200,
    storms: Annotated[int, typer.Option(min=1, help="Of each kind, one after the other.")] = 3,
    card: Annotated[str, typer.Option(help="The world.")] = "toy",
    as_json: JsonFlag = False,
) -> None:
    """The longest time without a frame that drivers see while people join, or one reloads a page, 200 times at once."""
    from ...clients.bench.server import ServerFailed, serving
    from ...clients.bench.storm import storms as measure
    from ...clients.python.signalling import NoServer, RoomRefused

    try:
        with serving(card, "--slots", str(rooms), *UNLIMITED) as base:
            report = asyncio.run(measure(base, rooms, offers, storms))
    except (ServerFailed, NoServer, RoomRefused) as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        Console().print(_table(report))


def _table(report: "StormReport") -> Table:
    table = Table(title=f"Frames of {report.rooms} rooms in storms, ms between two")
    for column in ("storm", "offers", "answered", "s", "p50", "p95", "p99", "longest"):
        table.add_column(column, justify="right")
    rows = [("none", "", "", "", report.calm_ms)]
    rows += [(s.kind, str(s.offers), str(s.answered), f"{s.seconds:g}", s.interval_ms) for s in report.storms]
    for *words, ms in rows:
        table.add_row(*words, *(f"{value:.1f}" for value in (ms.p50, ms.p95, ms.p99, ms.max)))
    return table
