"""`worldroom train`: run a card's own recipe."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .errors import did_you_mean, fail

RECIPES = ("drive",)


def train(
    card: Annotated[str, typer.Argument(help="The card whose recipe to run: drive.")],
    out: Annotated[Path, typer.Option(help="Data, checkpoints and results; a second run resumes there.")] = Path(
        "runs/drive"
    ),
    stage: Annotated[list[str] | None, typer.Option(help="Only these stages, in order; default: all.")] = None,
    small: Annotated[bool, typer.Option(help="A smoke test of seconds instead of the real budget.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of data, initialization and order.")] = 0,
) -> None:
    """Train a world from nothing, on CPU, with progress bars; resumable and seeded."""
    if card not in RECIPES:
        raise fail(f"no recipe for card '{card}'{did_you_mean(card, RECIPES)}")
    from ..training.drive.minilm import missing_packages
    from ..training.drive.recipe import SMALL, Budget, Stage, run

    known = tuple(Stage)
    unknown = [name for name in stage or () if name not in known]
    if unknown:
        raise fail(f"no stage '{unknown[0]}'{did_you_mean(unknown[0], known)}; stages: {', '.join(known)}")
    stages = tuple(Stage(name) for name in stage or known)
    missing = missing_packages() if Stage.TEXT in stages else ()
    if missing:
        raise fail(f"stage text reads packages that are not installed: pip install --no-deps {' '.join(missing)}")
    run(out, stages, SMALL if small else Budget(), seed, Console())
