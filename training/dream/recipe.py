"""The recipe of `dream`, from data to weights: stages in order, each resumable and seeded.

    <out>/autoencoder.pt         drive's autoencoder, trained on                    (autoencoder)
    <out>/shards/*.npz           simulated driving in latents, train and held       (data)
    <out>/recurrence.pt          what moves recurrent tokens on                     (recurrence)
    <out>/lasting.pt             the same, when it has learned to last              (lasting)
    <out>/reader.pt              what finds the first ones in pictures              (reader)
    <out>/spread.pt              what tells places of a picture of tokens           (seeing)
    <out>/paint.pt               what paints single pictures                        (paint)
    <out>/teacher.pt             the many-step teacher                              (teacher)
    <out>/student.pt             the few-step student                               (student)
    <out>/decoder.pt             the decoder, trained on with the student's frames  (decoder)
    <out>/weights/*.safetensors  what the card serves                               (export)
    <out>/quality.json           every figure of it                                 (quality)

Budgets are iterations, so that a stopped, slow or shared machine gives the same weights as a fast one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import assert_never

import msgspec
import numpy as np
import torch
from rich.console import Console

from ...models.dream.shape import DreamShape
from ...models.drive.card import WEIGHTS as PAINTED
from ...models.drive.runtime import load_networks
from ..drive.chains import BRIEF, Phase
from ..progress import Bar, each
from . import (
    stage_autoencoder,
    stage_decoder,
    stage_lasting,
    stage_paint,
    stage_reader,
    stage_recurrence,
    stage_seeing,
    stage_student,
    stage_teacher,
)
from .data import shard_path, simulate, write_shard
from .files import HELD_SEED, autoencoder_of, export, network_of, recurrence_of, shards_in, store_in
from .inherit import begun
from .quality import measure_card


class Stage(StrEnum):
    AUTOENCODER = "autoencoder"
    DATA = "data"
    RECURRENCE = "recurrence"
    LASTING = "lasting"
    READER = "reader"
    SEEING = "seeing"
    PAINT = "paint"
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
    drives: tuple[int, int] = (1536, 420)  # sessions, frames of each: what the recurrence sees
    phases: tuple[Phase, ...] = stage_recurrence.PHASES
    lasting: int = 6000
    reader: int = 3000
    seeing: tuple[int, int] = (60_000, 3000)  # frames, iterations
    paint: int = 6000
    teacher: int = 6000
    student: int = 4000
    decoder: int = 3000


SMALL = Budget(
    pictures=(8, 2),
    autoencoder=2,
    shards=1,
    episodes=8,
    frames=70,
    drives=(16, 60),
    phases=BRIEF,
    lasting=2,
    reader=2,
    seeing=(500, 2),
    paint=2,
    teacher=2,
    student=2,
    decoder=2,
)  # minutes become seconds; for tests


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
        case Stage.RECURRENCE:
            _recurrence(out, budget, seed, bar)
        case Stage.LASTING:
            _lasting(out, budget, seed, bar)
        case Stage.READER:
            _reader(out, budget, seed, bar)
        case Stage.SEEING:
            _seeing(out, budget, seed, bar)
        case Stage.PAINT:
            _paint(out, budget, seed, bar)
        case Stage.TEACHER:
            _teacher(out, budget, seed, bar)
        case Stage.STUDENT:
            bar.total(budget.student)

            def dreamed(r: stage_student.Report) -> None:
                own = f"young {r.young:.4f}, old {r.old:.4f} (up to {r.oldest} frames)"
                bar.at(r.iteration, f"{own}, to the teacher {r.taught:.4f}, recorded {r.recorded:.4f}")

            teacher = network_of(out / "teacher.pt")
            stage_student.train(store_in(out, "train"), teacher, out / "student.pt", budget.student, seed, dreamed)
        case Stage.DECODER:
            bar.total(budget.decoder)
            student, autoencoder = network_of(out / "student.pt"), autoencoder_of(out / "autoencoder.pt")
            small = budget.frames < 100
            recurrence = recurrence_of(out)
            sessions, each_of = (4, 4) if small else (64, 240)
            pairs = stage_decoder.pairs(student, autoencoder, recurrence, seed, sessions, each_of)
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
            report = measure_card(out / "weights", PAINTED / "judge.safetensors", out / "sheets", False, bar.add)
            (out / "quality.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
        case _:
            assert_never(stage)


def _drives(budget: Budget, seed: int) -> stage_recurrence.Drives:
    return stage_recurrence.drives(seed + 31, *budget.drives)


def _recurrence(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    bar.total(sum(phase.iterations for phase in budget.phases))
    stage_recurrence.train(
        _drives(budget, seed),
        DreamShape(),
        out / "recurrence.pt",
        budget.phases,
        seed,
        lambda done, loss: bar.at(done, f"error of labels {loss:.5f}"),
    )


def _lasting(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    bar.total(budget.lasting)
    stage_lasting.train(
        stage_recurrence.load_recurrence(out / "recurrence.pt", DreamShape()),
        _drives(budget, seed),
        out / "lasting.pt",
        budget.lasting,
        seed,
        lambda done, own, recorded: bar.at(done, f"missed by itself {own:.4f}, recorded {recorded:.4f}"),
    )


def _reader(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    bar.total(budget.reader)
    stage_reader.train(
        shards_in(out, "train"),
        shards_in(out, "held"),
        recurrence_of(out),
        DreamShape(),
        out / "reader.pt",
        budget.reader,
        seed,
        lambda done, loss, held: bar.at(done, f"error of tokens {loss:.4f}, held-out {held:.4f}"),
    )


def _seeing(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    frames, total = budget.seeing
    bar.total(total)
    painter, _ = load_networks(PAINTED)
    stage_seeing.train(
        stage_seeing.views(painter, _drives(budget, seed), frames, seed),
        recurrence_of(out),
        DreamShape(),
        out / "spread.pt",
        total,
        seed,
        lambda done, loss, held: bar.at(done, f"missed {loss:.3f} of the variance, held-out {held:.3f}"),
    )


def _paint(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    bar.total(budget.paint)
    shape, recurrence = DreamShape(), recurrence_of(out)
    reader, spread = (
        stage_reader.load_reader(out / "reader.pt", shape),
        stage_seeing.load_spread(out / "spread.pt", shape),
    )
    network = begun(shape, recurrence, reader, spread, load_networks(PAINTED)[0])
    stage_paint.train(
        shards_in(out, "train"),
        shards_in(out, "held"),
        recurrence,
        network,
        out / "paint.pt",
        budget.paint,
        seed,
        lambda done, loss, held: bar.at(done, f"error {loss:.4f}, held-out {held:.4f}"),
    )


def _teacher(out: Path, budget: Budget, seed: int, bar: Bar) -> None:
    bar.total(budget.teacher)

    def taught(r: stage_teacher.Report) -> None:
        held = "" if r.held is None else ", held-out {:.4f} / {:.4f}, other tokens {:.4f}".format(*r.held)
        bar.at(r.iteration, f"at sigma 1 {r.pure:.4f}, below {r.partly:.4f}{held}")

    network = stage_teacher.still(network_of(out / "paint.pt"))
    store, held = store_in(out, "train"), store_in(out, "held")
    stage_teacher.train(store, held, network, out / "teacher.pt", budget.teacher, seed, taught)


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
