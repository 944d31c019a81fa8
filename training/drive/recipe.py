"""The recipe of the driving world, from data to weights: stages in order, each resumable and seeded.

    <out>/train, <out>/held      simulated episodes and their latents        (data, encode)
    <out>/*.pt                   checkpoints           (autoencoder, memory, paint, rollout, decoder)
    <out>/weights/*.safetensors  what the card serves, and the judge         (judge, text, export)

Budgets are iterations, so that a stopped, slow or shared machine gives the same weights as a fast one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import assert_never

import numpy as np
from rich.console import Console

from ...models.drive.runtime import SHAPE
from ...models.drive.transformer import DriveTransformer
from ...models.shared.road.autoencoder import DriveAutoencoder
from ..progress import Bar, each
from . import stage_autoencoder, stage_judge, stage_memory, stage_paint, stage_rollout
from .chains import BRIEF, Phase
from .data import generate, open_episodes
from .export import save_half, save_openings
from .judge import save_judge
from .optimise import load_checkpoint
from .stage_autoencoder import Pairs, refine
from .stage_memory import PHASES
from .stage_rollout import Ramp
from .text import held_out_accuracy
from .text import train as train_text
from .windows import load_latents

HELD_SEED = 9001
LONGER = Ramp(4, 12, 0.6)


class Stage(StrEnum):
    DATA = "data"
    AUTOENCODER = "autoencoder"
    ENCODE = "encode"
    MEMORY = "memory"
    PAINT = "paint"
    ROLLOUT = "rollout"
    DECODER = "decoder"
    JUDGE = "judge"
    TEXT = "text"
    EXPORT = "export"


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """How much of everything. The shipped weights had about these budgets, stage by stage."""

    episodes: int = 120
    held_episodes: int = 24
    frames: int = 480
    autoencoder: int = 1600
    memory: tuple[Phase, ...] = PHASES
    paint: int = 8000
    rollout: int = 1100
    decoder: int = 1400
    ramp: Ramp = LONGER
    judge: int = 1200
    workers: int = 2


SMALL = Budget(4, 2, 60, 4, BRIEF, 2, 2, 2, Ramp(4, 12, 0.5), 4, 1)  # minutes become seconds; for tests


def run(out: Path, stages: Sequence[Stage], budget: Budget, seed: int, console: Console) -> None:
    """Run the stages in order, each with a progress bar; a finished or begun stage resumes from its files."""
    for stage, bar in each(stages, console):
        _run(out, stage, budget, seed, bar)


def _run(out: Path, stage: Stage, budget: Budget, seed: int, bar: Bar) -> None:
    match stage:
        case Stage.DATA:
            bar.total((budget.episodes + budget.held_episodes) * budget.frames)
            for name, episodes, data_seed in (
                ("train", budget.episodes, seed + 11),
                ("held", budget.held_episodes, HELD_SEED),
            ):
                generate(out / name, episodes, budget.frames, data_seed, budget.workers, bar.add)
        case Stage.AUTOENCODER:
            bar.total(budget.autoencoder)
            frames, held = open_episodes(out / "train").frames, open_episodes(out / "held").frames
            stage_autoencoder.train(
                frames, held, out / "autoencoder.pt", budget.autoencoder, seed, _note_autoencoder(bar)
            )
        case Stage.ENCODE:
            _encode(out, bar)
        case Stage.MEMORY:
            bar.total(sum(phase.iterations for phase in budget.memory))
            stage_memory.train(load_latents(out / "train"), out / "memory.pt", budget.memory, seed, _note_memory(bar))
        case Stage.PAINT:
            bar.total(budget.paint)
            data, held_latents = load_latents(out / "train"), load_latents(out / "held")
            recall = stage_memory.load_recall(out / "memory.pt", SHAPE)
            stage_paint.train(data, held_latents, recall, SHAPE, out / "paint.pt", budget.paint, seed, _note_paint(bar))
        case Stage.ROLLOUT:
            bar.total(budget.rollout)
            start = _transformer(out / "paint.pt")
            data = load_latents(out / "train")
            stage_rollout.train(data, start, out / "rollout.pt", budget.rollout, seed, budget.ramp, _note_rollout(bar))
        case Stage.DECODER:
            _decoder(out, budget, seed, bar)
        case Stage.JUDGE:
            _judge(out, budget, seed, bar)
        case Stage.TEXT:
            measured = held_out_accuracy(train_text(out, out / "weights" / "text.safetensors", bar.total, bar.add))
            bar.note("time {:.2f}, biome {:.2f}, weather {:.2f} held-out".format(*measured.shares))
        case Stage.EXPORT:
            export(out, out / "weights", f"seed {seed}, {budget}")
        case _:
            assert_never(stage)


def export(out: Path, weights: Path, made_by: str) -> None:
    """Write transformer, autoencoder and openings as the card reads them."""
    metadata = {"recipe": "drive-1", "made_by": made_by}
    last = out / "rollout.pt" if (out / "rollout.pt").exists() else out / "paint.pt"
    save_half(_transformer(last), weights / "transformer.safetensors", metadata)
    autoencoder = _autoencoder(out)
    save_half(autoencoder, weights / "autoencoder.safetensors", metadata)
    save_openings(autoencoder, HELD_SEED, weights / "openings.safetensors")


def _encode(out: Path, bar: Bar) -> None:
    autoencoder = _encoder(out)
    for name in ("held", "train"):
        frames = open_episodes(out / name).frames
        bar.total(frames.shape[0] * frames.shape[1])
        if not (out / name / "latents.npy").exists():
            stage_autoencoder.encode_all(autoencoder, frames, out / name / "latents.npy", bar.add)


def _decoder(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    folder, painted = out / "train", out / "train" / "painted.npy"
    if not painted.exists():
        data = load_latents(folder)
        bar.total(data.controls_ETK.shape[0] * data.controls_ETK.shape[1])
        stage_paint.paint_all(_transformer(out / "rollout.pt"), data, painted, bar.add)
    bar.total(budget.decoder)
    latents = (np.load(folder / "latents.npy", mmap_mode="r"), np.load(painted, mmap_mode="r"))
    pairs, held = Pairs(latents, open_episodes(folder).frames), open_episodes(out / "held").frames
    refine(_encoder(out), pairs, held, out / "decoder.pt", budget.decoder, seed, _note_autoencoder(bar))


def _judge(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    bar.total(budget.judge)
    small = budget.judge < 100
    faded = stage_judge.make_lacking(12 if small else 60, 1 if small else 20, seed + 5)
    unseen = stage_judge.make_lacking(12 if small else 30, 1 if small else 8, seed + 99)
    autoencoder, note = _autoencoder(out), lambda step, loss: bar.at(step, f"loss {loss:.3f}")
    judge = stage_judge.train(open_episodes(out / "train"), faded, autoencoder, budget.judge, seed, note)
    measured = stage_judge.accuracy(judge, open_episodes(out / "held"), unseen, autoencoder)
    (out / "weights").mkdir(exist_ok=True)
    figures = {name: f"{value:.4f}" for name, value in dataclasses.asdict(measured).items()}
    save_judge(judge, out / "weights" / "judge.safetensors", figures)


def _encoder(out: Path) -> DriveAutoencoder:
    """The autoencoder as first trained."""
    model = DriveAutoencoder()
    model.load_state_dict(load_checkpoint(out / "autoencoder.pt").average)
    model.eval().requires_grad_(False)
    return model


def _autoencoder(out: Path) -> DriveAutoencoder:
    """With the refined decoder, once there is one."""
    model = _encoder(out)
    if (out / "decoder.pt").exists():
        model.load_state_dict(load_checkpoint(out / "decoder.pt").average)
    return model


def _transformer(path: Path) -> DriveTransformer:
    model = DriveTransformer(SHAPE)
    model.load_state_dict(load_checkpoint(path).average)
    return model


def _note_autoencoder(bar: Bar) -> Callable[[stage_autoencoder.Report], None]:
    def note(r: stage_autoencoder.Report) -> None:
        bar.at(r.iteration, f"loss {r.loss:.4f}" + ("" if r.held_psnr is None else f", held-out {r.held_psnr:.2f} dB"))

    return note


def _note_paint(bar: Bar) -> Callable[[stage_paint.Report], None]:
    def note(r: stage_paint.Report) -> None:
        bar.at(r.iteration, f"error {r.loss:.4f}" + ("" if r.held_loss is None else f", held-out {r.held_loss:.4f}"))

    return note


def _note_memory(bar: Bar) -> Callable[[int, float], None]:
    return lambda done, loss: bar.at(done, f"error {loss:.4f}")


def _note_rollout(bar: Bar) -> Callable[[stage_rollout.Report], None]:
    def note(r: stage_rollout.Report) -> None:
        end = f"{r.frames} frames end at {r.end_picture:.3f}, memory {r.end_memory:.3f}"
        bar.at(r.iteration, f"own {r.own:.4f}, recorded {r.recorded:.4f}, {end}")

    return note
