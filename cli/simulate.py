"""`worldroom simulate`: how many people a device will hold, before it is bought: the real engine in virtual time."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..engine.spec import EngineSpec, Policy
from .errors import fail
from .output import JsonFlag, print_object

if TYPE_CHECKING:
    from ..simulation.simulation import Setup
    from ..simulation.trace import Trace

DUTY_CYCLE, CROWD = "duty-cycle", "crowd"


def simulate(
    card: Annotated[str, typer.Argument(help="The card, or several with commas between: they share the device.")],
    device: Annotated[
        str, typer.Option(help="h200, h100, b200, a100, l40s, rtx4090, a10g, cpu-avx2, epyc-core; or FILE.")
    ],
    trace: Annotated[
        str, typer.Option(help="duty-cycle (made-up people), crowd (one more until full), or FILE.")
    ] = DUTY_CYCLE,
    seconds: Annotated[float, typer.Option(min=30, max=1e6, help="Length of a made-up trace.")] = 300.0,
    every: Annotated[float, typer.Option(min=0.1, help="duty-cycle: seconds between two arrivals, on average.")] = 12.0,
    patience: Annotated[float, typer.Option(min=0, help="duty-cycle: seconds a refused person waits in line.")] = 0.0,
    policy: Annotated[
        Policy, typer.Option(help="Interleave steps, or run whole chunks as a request server does.")
    ] = Policy.STEP,
    slots: Annotated[int, typer.Option(min=1, max=1024, help="Sessions of each card at most.")] = 32,
    max_rows: Annotated[int, typer.Option(min=1, max=32, help="Rows of one batch.")] = 4,
    share_cap: Annotated[
        float, typer.Option(min=0.05, max=1, help="Part of the device that admission hands out.")
    ] = 0.9,
    memory: Annotated[float | None, typer.Option(min=0, help="GB of the device, where its sheet does not say.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of made-up people and of draws between equals.")] = 1,
    plot: Annotated[Path | None, typer.Option(help="Also draw the time course into this SVG file.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """How many people will this device hold? Admission, scheduler, sessions and pacing are those that serve.

    Prices come from a measured sheet (a server writes one into ~/.cache/worldroom/prices, `bench model --json` prints
    one) or are computed from the card's footprint and the device's data sheet at 40 % of its FLOP/s, without weights.

    Not simulated: the network, browsers and the edge; other work on the host; a device that slows down while it decodes
    beside (its two queues do not feel each other); first pictures and caches rebuilt at a new prompt; the death of a
    worker. Computed prices know no activations on their way through memory and no kernel that is slow at few tokens:
    take them as a hope, measured ones as a forecast.
    """
    from ..models.holding import DoesNotFit
    from ..simulation import crowd as crowds
    from ..simulation.figures import report
    from ..simulation.plot import svg
    from ..simulation.simulation import play
    from ..simulation.tables import tables

    spec = EngineSpec(slots=slots, max_rows=max_rows, share_cap=share_cap, seed=seed, policy=policy)
    names = list(dict.fromkeys(name.strip() for name in card.split(",")))
    setup = setup_of(names, device, memory, spec)
    try:
        if trace == CROWD:
            held = crowds.hold(setup, seconds, seed)
            print_object(held) if as_json else Console().print(crowds.table(held))
            return
        played = play(setup, _trace(trace, seconds, seed, every, patience))
    except DoesNotFit as error:
        raise fail(str(error)) from None
    figures = report(setup, played)
    if plot is not None:
        try:
            plot.write_text(svg(figures, played))
        except OSError as error:
            raise fail(f"cannot write {plot}: {error.strerror}") from None
    print_object(figures) if as_json else Console().print(tables(figures, played))


def setup_of(cards: Sequence[str], device: str, memory: float | None, spec: EngineSpec) -> "Setup":
    """Cards on a device; `memory` in GB where it is not the sheet's. Fails with one line."""
    from ..models.catalog import UnknownCard
    from ..models.holding import DoesNotFit, check
    from ..models.weights import WeightsError
    from ..simulation.measured import BadSheet
    from ..simulation.roofline import NothingToCount
    from ..simulation.sheets import UnknownDevice, priced
    from ..simulation.simulation import Setup

    try:
        on = priced(cards, device)
    except (UnknownCard, UnknownDevice, NothingToCount, BadSheet, WeightsError) as error:
        raise fail(str(error)) from None
    except OSError as error:
        raise fail(f"cannot read {device}: {error.strerror}") from None
    size = on.memory_bytes if memory is None else int(memory * 1e9)
    try:
        for prices in on.cards:
            if size is not None and prices.footprint is not None:
                check(prices.card, prices.footprint, prices.card.recipe.default.precision, size, size)
    except DoesNotFit as error:
        raise fail(str(error)) from None
    return Setup(on.cards, on.device, replace(spec, memory=size))


def _trace(trace: str, seconds: float, seed: int, every: float, patience: float) -> "Trace":
    import msgspec

    from ..simulation.duty_cycle import duty_cycle
    from ..simulation.trace import load

    if trace == DUTY_CYCLE:
        return duty_cycle(seconds, seed, every, patience)
    try:
        return load(Path(trace))
    except OSError as error:
        raise fail(f"no trace '{trace}': {error.strerror}; there are {DUTY_CYCLE}, {CROWD}, and files") from None
    except msgspec.MsgspecError as error:
        raise fail(f"{trace} is no trace: {error}") from None
