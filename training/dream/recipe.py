"""The recipe of `dream`, from data to weights: stages in order, each resumable and seeded.

    <out>/autoencoder.pt         drive's autoencoder, trained on                    (autoencoder)
    <out>/shards/*.npz           simulated driving in latents, train and held       (data)
    <out>/teacher.pt             the many-step teacher                              (teacher)
    <out>/student.pt             the few-step student                               (student)
    <out>/decoder.pt             the decoder, trained on with the student's frames  (decoder)
    <out>/weights/*.safetensors  what the card serves                               (export)
    <out>/quality.json           every figure of it                                 (quality)

Budgets are iterations, so that a stopped, slow or shared machine gives the same weights as a fast one.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import assert_never

import msgspec
import numpy as np
import torch
from rich.console import Console

from ...models.dream.transformer import DreamShape
from ...models.drive.card import WEIGHTS as PAINTED
from ...models.drive.runtime import load_networks
from ...models.shared.road.autoencoder import DriveAutoencoder
from ..drive.optimise import load_checkpoint
from ..progress import Bar, each
from . import stage_autoencoder, stage_decoder, stage_student, stage_teacher
from .data import read_shard, shard_path, simulate, write_shard
from .export import save_openings, save_weights
from .quality import measure_card
from .stage_teacher import Learner
from .windows import Store

HELD_SEED = 9001


class Stage(StrEnum):
    AUTOENCODER = "autoencoder"
    DATA = "data"
    TEACHER = "teacher"
    STUDENT = "student"
    DECODER = "decoder"
    EXPORT = "export"
    QUALITY = "quality"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of everything; README.md says how far the kept checkpoints are."""

    pictures: tuple[int, int] = (160, 100)  # sessions, pictures of each: what the autoencoder sees
    autoencoder: int = 4000
    shards: int = 24
    held_shards: int = 1
    episodes: int = 16
    frames: int = 480
    teacher: int = 6000
    student: int = 4000
    decoder: int = 3000


SMALL = Budget((8, 2), 2, 1, 1, 8, 70, 2, 2, 2)  # minutes become seconds; for tests


def run(out: Path, stages: Sequence[Stage], budget: Budget, seed: int, console: Console) -> None:
    """Run the stages in order, each with a progress bar; a finished or begun stage resumes from its files."""
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    for stage, bar in each(stages, console):
        _run(out, stage, budget, seed, bar)


def _run(out: Path, stage: Stage, budget: Budget, seed: int, bar: Bar) -> None:
    match stage:
        case Stage.AUTOENCODER:
            _autoencoder(out, budget, seed, bar)
        case Stage.DATA:
            _drive_on(out, budget, seed, bar)
        case Stage.TEACHER:
            bar.total(budget.teacher)

            def taught(r: stage_teacher.Report) -> None:
                held = "" if r.held is None else ", held-out {:.4f} / {:.4f}, other dice {:.4f}".format(*r.held)
                bar.at(r.iteration, f"at sigma 1 {r.pure:.4f}, below {r.partly:.4f}, labels {r.labels:.3f}{held}")

            store, held = _store(out, "train"), _store(out, "held")
            stage_teacher.train(store, held, DreamShape(), out / "teacher.pt", budget.teacher, seed, taught)
        case Stage.STUDENT:
            bar.total(budget.student)

            def dreamed(r: stage_student.Report) -> None:
                own = f"young {r.young:.4f}, old {r.old:.4f} (up to {r.oldest} frames)"
                bar.at(r.iteration, f"{own}, to the teacher {r.taught:.4f}, recorded {r.recorded:.4f}")

            teacher = learner_of(out / "teacher.pt")
            stage_student.train(_store(out, "train"), teacher, out / "student.pt", budget.student, seed, dreamed)
        case Stage.DECODER:
            bar.total(budget.decoder)
            student, autoencoder = learner_of(out / "student.pt").network, autoencoder_of(out / "autoencoder.pt")
            small = budget.frames < 100
            pairs = stage_decoder.pairs(student, autoencoder, seed, 4 if small else 64, 4 if small else 240)
            held_x = stage_autoencoder.frames(HELD_SEED + 1, 8 if small else 48, 2 if small else 4)
            stage_decoder.train(
                autoencoder,
                pairs,
                held_x,
                out / "decoder.pt",
                budget.decoder,
                seed,
                lambda done, loss, decibel: bar.at(done, f"loss {loss:.4f}, held-out {decibel:.2f} dB"),
            )
        case Stage.EXPORT:
            export(out, out / "weights", f"seed {seed}, {budget}")
        case Stage.QUALITY:
            report = measure_card(out / "weights", PAINTED / "judge.safetensors", False, bar.add)
            (out / "quality.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
        case _:
            assert_never(stage)


def export(out: Path, weights: Path, made_by: str) -> None:
    """Write transformer, autoencoder and openings as the card reads them; the text table is drive's."""
    last = out / "student.pt" if (out / "student.pt").exists() else out / "teacher.pt"
    autoencoder = autoencoder_of(out / "decoder.pt" if (out / "decoder.pt").exists() else out / "autoencoder.pt")
    metadata = {"recipe": "dream-1", "made_by": made_by}
    save_weights(learner_of(last).network, weights / "transformer.safetensors", metadata)
    save_weights(autoencoder, weights / "autoencoder.safetensors", metadata)
    save_openings(autoencoder, HELD_SEED, weights / "openings.safetensors")
    shutil.copyfile(PAINTED / "text.safetensors", weights / "text.safetensors")


def learner_of(path: Path) -> Learner:
    """The averaged network of a checkpoint, with the heads that training throws away."""
    learner = Learner(DreamShape())
    learner.load_state_dict(load_checkpoint(path).average)
    return learner


def autoencoder_of(path: Path) -> DriveAutoencoder:
    model = DriveAutoencoder()
    model.load_state_dict(load_checkpoint(path).average)
    return model.eval().requires_grad_(False)


def _store(out: Path, name: str) -> Store:
    return Store([read_shard(path) for path in sorted((out / "shards").glob(f"{name}-*.npz"))])


def _autoencoder(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    bar.total(budget.autoencoder)
    _, start = load_networks(PAINTED)
    sessions, each_of = budget.pictures
    kept = out / "pictures.npy"
    if not kept.exists():
        np.save(kept, stage_autoencoder.frames(seed + 77, sessions, each_of))
    held = stage_autoencoder.frames(HELD_SEED + 1, max(2, sessions // 4), 2)
    stage_autoencoder.train(
        start,
        np.load(kept),
        held,
        out / "autoencoder.pt",
        budget.autoencoder,
        seed,
        lambda done, loss, decibel: bar.at(done, f"loss {loss:.4f}, held-out {decibel:.2f} dB"),
    )


def _drive_on(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    bar.total(budget.shards + budget.held_shards)
    autoencoder = autoencoder_of(out / "autoencoder.pt")
    for name, count, data_seed in (("train", budget.shards, seed + 11), ("held", budget.held_shards, HELD_SEED)):
        for number in range(count):
            path = shard_path(out, name, number)
            if not path.exists():
                write_shard(simulate(autoencoder, data_seed, number, budget.episodes, budget.frames), path)
            bar.add(1)
