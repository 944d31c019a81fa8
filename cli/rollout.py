"""`worldroom rollout`: a world along a file of actions, written to an MP4. No server, no pacing."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from .errors import did_you_mean, fail


def rollout(
    card: Annotated[str, typer.Argument(help="The world; `worldroom cards list` shows them.")],
    prompt: Annotated[str, typer.Option(help="What the world is.")],
    actions: Annotated[
        Path, typer.Option(help="One line per chunk: the controls held, e.g. `left gas`; empty = none.")
    ],
    out: Annotated[Path, typer.Option(help="The MP4 to write.")],
    seed: Annotated[int, typer.Option(help="Seed of the world.")] = 0,
    steps: Annotated[int | None, typer.Option(help="Denoise steps, as the recipe allows.")] = None,
) -> None:
    """Roll a world out to a file, through the same loops as a session."""
    from ..models import catalog
    from ..models.contract.recipe import RecipeMismatch
    from ..models.weights import WeightsError

    try:
        loaded = catalog.load(card)
        if steps is not None:
            loaded.card.recipe.levels(steps)
    except (catalog.UnknownCard, RecipeMismatch, WeightsError) as error:
        raise fail(str(error)) from None
    try:
        lines = actions.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise fail(f"cannot read {actions}: {error}") from None
    if not lines:
        raise fail(f"{actions} has no line: one line per chunk is needed")
    held = held_controls(lines, tuple(control.name for control in loaded.card.controls))
    from .movie import write_movie

    frames = asyncio.run(write_movie(loaded, prompt, held, out, seed, steps))
    typer.echo(f"{out}: {frames} frames at {loaded.card.frame.fps} fps")


def held_controls(lines: list[str], names: tuple[str, ...]) -> list[tuple[float, ...]]:
    """A value per control of the card for every line; an unknown name fails with its line."""
    held = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        for word in words:
            if word not in names:
                raise fail(
                    f"line {number}: no control '{word}'{did_you_mean(word, names)}; there are {', '.join(names)}"
                )
        held.append(tuple(float(name in words) for name in names))
    return held
