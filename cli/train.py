"""`worldroom train`: run a card's own recipe."""

from pathlib import Path
from typing import Annotated

import typer

from .errors import did_you_mean, fail

RECIPES = ("drive",)


def train(
    card: Annotated[str, typer.Argument(help="The card whose recipe to run: drive.")],
    out: Annotated[
        Path, typer.Option(help="Folder for data, checkpoints and weights; a second run resumes there.")
    ] = Path("runs/drive"),
    stage: Annotated[list[str] | None, typer.Option(help="Run only these stages, in order; default: all.")] = None,
    budget: Annotated[
        float, typer.Option(min=0.001, help="Scale of every stage's iterations; 0.01 is a smoke test.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of data, initialization and order.")] = 0,
    export: Annotated[bool, typer.Option(help="Write the result into the card's weights folder.")] = False,
) -> None:
    """Train a world from nothing, on CPU, with progress bars; resumable and seeded."""
    if card not in RECIPES:
        raise fail(f"no recipe for card '{card}'{did_you_mean(card, RECIPES)}")
    from ..training.drive import recipe

    unknown = [name for name in stage or () if name not in recipe.STAGES]
    if unknown:
        raise fail(
            f"unknown stage '{unknown[0]}'{did_you_mean(unknown[0], recipe.STAGES)}; stages: {', '.join(recipe.STAGES)}"
        )
    recipe.run(out, tuple(stage or recipe.STAGES), budget=budget, seed=seed, export=export)
