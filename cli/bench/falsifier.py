"""`worldroom bench falsifier`: step-level scheduling against whole chunks, on the real engine in virtual time."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from ...engine.spec import EngineSpec
from ..errors import fail
from ..output import JsonFlag, print_object
from ..simulate import setup_of


def bench_falsifier(
    pair: Annotated[
        list[str] | None, typer.Option(help="CARD@DEVICE as `simulate` takes them; may be repeated. Default: three.")
    ] = None,
    trace: Annotated[
        list[Path] | None, typer.Option(help="Traces of your own; may be repeated. Default: the package's.")
    ] = None,
    traces: Annotated[int, typer.Option(min=1, max=64, help="The package's trace and so many of its kind.")] = 12,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two arrivals in those, on average.")] = 12.0,
    slots: Annotated[int, typer.Option(min=1, max=1024, help="Sessions at most.")] = 32,
    max_rows: Annotated[int, typer.Option(min=1, max=16, help="Rows of one batch, at step level.")] = 4,
    share_cap: Annotated[float, typer.Option(min=0.05, max=1, help="Part of the device that is handed out.")] = 0.9,
    seed: Annotated[int, typer.Option(help="Seed of draws between equals.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Step-level scheduling against whole chunks, first come first served, on several traces in virtual time."""
    from ...simulation.duty_cycle import several
    from ...simulation.falsifier import PAIRS, falsify, table
    from ...simulation.trace import load

    spec = EngineSpec(slots=slots, max_rows=max_rows, share_cap=share_cap, seed=seed)
    pairs = [tuple(given.rpartition("@")[::2]) for given in pair] if pair else PAIRS
    try:
        chosen = [load(path) for path in trace] if trace else several(traces, every)
    except (OSError, msgspec.MsgspecError) as error:
        raise fail(f"cannot read a trace: {error}") from None
    report = falsify([setup_of([card], device, None, spec) for card, device in pairs], chosen)
    if as_json:
        print_object(report)
    else:
        Console().print(table(report))
