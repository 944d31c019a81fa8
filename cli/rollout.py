"""`worldroom rollout`: a world along held controls or a file of actions, written to an MP4. No server, no pacing."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ..models.contract.card import FrameSpec, ModelCard
from .checkpoints import checkpoint_of
from .errors import did_you_mean, fail
from .output import JsonFlag, print_object, progress

SECONDS = 5
"""Length of a film that nobody gave one, as it is watched."""
STOPPED = 130
"""Exit status after Ctrl-C, as a shell has it."""


class RolloutReport(msgspec.Struct, frozen=True):
    """`fps`: frames made in a second of work, encoding included. `stopped`: by Ctrl-C, `path` has what was made."""

    card: str
    path: str
    frames: int
    seconds: float
    fps: float
    stopped: bool


def rollout(
    card: Annotated[str, typer.Argument(help="The world; `worldroom cards list` shows them.")],
    prompt: Annotated[str | None, typer.Option(help="What the world is. Default: the card's first suggestion.")] = None,
    frames: Annotated[
        int | None, typer.Option(min=1, help=f"How many frames. Default: {SECONDS} seconds of them.")
    ] = None,
    hold: Annotated[str, typer.Option(help="Controls held all along, e.g. `gas` or `left gas`.")] = "",
    actions: Annotated[
        Path | None,
        typer.Option(help="Instead of --frames and --hold a file, a line per chunk: the controls held; empty = none."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The MP4 to write. Default: CARD.mp4 in this folder.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the world.")] = 0,
    steps: Annotated[int | None, typer.Option(help="Denoise steps, as the recipe allows.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Roll a world out to a file, through the same loops as a session. Ctrl-C keeps what was made until then.

    Example: worldroom rollout drive --prompt "neon city at night" --frames 240 --hold gas --out night.mp4
    """
    from ..clock import SystemClock
    from ..engine.device.device import ThreadDevice
    from ..models import catalog
    from ..models.contract.conditions import BadPrompt
    from ..models.weights import WeightsError

    try:
        loaded = catalog.load(card, checkpoint=checkpoint_of(card, None))
        if steps is not None:
            loaded.card.recipe.levels(steps)
    except (*catalog.REFUSALS, WeightsError) as error:
        raise fail(str(error)) from None
    spec = loaded.card.frame
    if actions is None:
        most = frames or SECONDS * spec.fps
        held = _held_all_along(hold, chunks_of(most, spec), loaded.card)
    elif frames is not None or hold:
        raise fail("--actions says what is held and how long: give it, or --frames and --hold")
    else:
        held = _held_by_file(actions, loaded.card)
        most = len(held) * max(spec.per_chunk, spec.opening)
    from .movie import Plan, write_movie

    path = out or Path(f"{card}.mp4")
    if path.is_dir():
        raise fail(f"cannot write {path}: it is a folder; name the film, e.g. --out {path / f'{card}.mp4'}")
    words = prompt if prompt is not None else next(iter(loaded.card.suggestions), "")
    plan, clock = Plan(words, held, most, seed, steps), SystemClock()
    with progress("frames") as bar:
        task = bar.add_task(card, total=most if actions is None else None)
        try:
            film = asyncio.run(write_movie(loaded, plan, path, ThreadDevice(clock), clock, lambda: bar.advance(task)))
        except OSError as error:
            raise fail(f"cannot write {path}: {error.strerror or error}") from None
        except BadPrompt as error:
            raise fail(str(error)) from None
    made = film.frames / max(1e-9, film.seconds)
    _tell(RolloutReport(card, str(path), film.frames, film.seconds, made, film.stopped), spec.fps, as_json)


def _tell(report: RolloutReport, fps: int, as_json: bool) -> None:
    if as_json:
        print_object(report)
    elif not report.frames:
        typer.echo("stopped before the first frame: nothing is written")
    else:
        begun = "stopped: " if report.stopped else ""
        typer.echo(
            f"{begun}{report.path}: {report.frames} frames at {fps} fps, "
            f"made in {report.seconds:.1f} s ({report.fps:.1f} frames/s)"
        )
    if report.stopped:
        raise typer.Exit(STOPPED)


def chunks_of(frames: int, spec: FrameSpec) -> int:
    """How many chunks hold that many frames."""
    return 1 + max(0, -(-(frames - spec.frames(opens=True)) // spec.per_chunk))


def _held_all_along(hold: str, chunks: int, card: ModelCard) -> list[tuple[float, ...]]:
    return held_controls([hold], card, "--hold") * chunks


def _held_by_file(actions: Path, card: ModelCard) -> list[tuple[float, ...]]:
    try:
        lines = actions.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise fail(f"cannot read {actions}: {error}") from None
    if not lines:
        raise fail(f"{actions} has no line: one line per chunk is needed")
    return held_controls(lines, card)


def held_controls(lines: list[str], card: ModelCard, source: str = "") -> list[tuple[float, ...]]:
    """A value per control of the card for every line; an unknown name fails with its line, or its `source`."""
    names = tuple(control.name for control in card.controls)
    held = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        for word in words:
            if word not in names:
                there = f"{did_you_mean(word, names)}; there are {', '.join(names)}"
                raise fail(f"{source or f'line {number}'}: no control '{word}'{there}")
        held.append(tuple(float(name in words) for name in names))
    return held
