"""`worldroom bench records`: its rows, one after the other."""

import asyncio
from typing import Annotated

import msgspec
import typer

from ...errors import did_you_mean, fail
from ...output import JsonFlag, print_object, report_table
from .amounts import Amounts

ROWS = ("overhead", "day", "faults", "export", "library")


def bench_records(
    row: Annotated[list[str] | None, typer.Argument(help="Only these: overhead, day, faults, export, library.")] = None,
    rooms: Annotated[int, typer.Option(min=1, max=64, help="overhead: rooms.")] = 8,
    seconds: Annotated[float, typer.Option(min=1, help="overhead: of each block; faults: of each fault.")] = 4.0,
    blocks: Annotated[int, typer.Option(min=1, help="overhead: blocks with, and as many without.")] = 5,
    hours: Annotated[float, typer.Option(min=0.01, help="day: of one room.")] = 24.0,
    chunks: Annotated[int, typer.Option(min=1, max=60, help="day: a second.")] = 24,
    sessions: Annotated[int, typer.Option(min=10, help="export: sessions.")] = 1000,
    listed: Annotated[int, typer.Option(min=10, help="library: sessions.")] = 10_000,
    as_json: JsonFlag = False,
) -> None:
    """Journal, films, receipts on against off; a day of a room; faults of Redis and disk; exports; the library."""
    chosen = row or ROWS
    for name in chosen:
        if name not in ROWS:
            raise fail(f"no row '{name}'{did_you_mean(name, ROWS)}; rows: {', '.join(ROWS)}")
    amounts = Amounts(rooms, seconds, blocks, hours, chunks, sessions, listed)
    for name in chosen:
        for report in asyncio.run(_measured(name, amounts)):
            print_object(report) if as_json else report_table(name, report)


async def _measured(name: str, amounts: Amounts) -> tuple[msgspec.Struct, ...]:
    match name:
        case "overhead":
            from .overhead import measure_overhead

            return await measure_overhead(amounts)
        case "day":
            from .day import measure_day

            return await measure_day(amounts)
        case "faults":
            from .faults import measure_faults

            return await measure_faults(amounts)
        case "export":
            from .exports import measure_exports

            return await measure_exports(amounts)
        case _:
            from .pages import measure_pages

            return await measure_pages(amounts)
