"""What skipping the last pass saves and costs on the shipped weights: the figures behind `skip.SKIP_BELOW`.

    pass 1 .. n-1   run
    pass n          skip.decide: run -> its frame is shown
                                 skip -> run all the same, beside the world: the exact frame from the same state

The world goes on from what a server would have shown, so states are those that skipping leads to. Worlds go through all
60 looks and five ways of driving; in the middle of each the look changes, by a cut or by a fade.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from ...models import catalog
from ...models.contract.intercept import Intercept
from ...models.contract.loaded import LoadedCard
from ...models.contract.loop import StepKind
from ...models.contract.recipe import RuntimeChoice
from ...models.drive.card import RECIPE
from ...models.drive.loop import Denoised, DriveResult
from ...models.drive.memory import PICTURE_TOKENS
from ...models.drive.skip import SkipLastPass
from ...models.parity.session import ChunkInput, ParitySession
from ...models.shared.road.chunk import Decoded, DecodeRow, Latent
from ...models.shared.road.look import ONE_HOT, THEMES

Keys = tuple[float, float, float, float]
"""left, right, gas, brake"""
NONE, GAS, BRAKE = (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0)
FADE = 10
CURVES = 12
"""Frames between one bend of the driver's and the next."""


class Quantiles(msgspec.Struct, frozen=True):
    """Of `count` samples; 0 where there are none."""

    count: int
    min: float
    median: float
    p95: float
    max: float


class SkipRow(msgspec.Struct, frozen=True):
    """One number of steps under one threshold, over all frames of all worlds.

    `skipped`: share of frames whose last pass does not run. `saved`: that pass's part of the CPU time of all passes.
    `residual`: of all frames, also of those where a server would not know it. `error`, `error_rms`: of the skipped
    frames, largest and root mean square difference of a pixel (of 1) to the exact frame from the same state.
    """

    steps: int
    below: float
    skipped: float
    saved: float
    residual: Quantiles
    error: Quantiles
    error_rms: Quantiles


class SkipReport(msgspec.Struct, frozen=True):
    """`bound`: the error that the recipe declares."""

    worlds: int
    frames_per_world: int
    bound: float
    rows: tuple[SkipRow, ...]

    def failures(self) -> list[str]:
        """Rows whose error is beyond the recipe's, with the numbers."""
        return [
            f"{row.steps} steps, below {row.below:g}: error {row.error.max:.3f} is above {self.bound:g}"
            for row in self.rows
            if row.error.max > self.bound
        ]


@dataclass(slots=True)
class Tally:
    """CPU seconds of passes, and the samples of `SkipRow`."""

    spent: float = 0.0
    saved: float = 0.0
    residuals: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    rms: list[float] = field(default_factory=list)


def measure(
    steps: Sequence[int], below: Sequence[float], worlds: int, frames: int, progress: Callable[[int], None]
) -> SkipReport:
    """Every number of steps (2 or more) with every threshold, on one thread; `progress` is told of frames."""
    torch.set_num_threads(1)
    rows = []
    for count in steps:
        drive = catalog.load("drive", RuntimeChoice(RECIPE.sampler, count, RECIPE.default.precision))
        drive.runtime.allocate(1)
        rows += [_row(drive, threshold, worlds, frames, progress) for threshold in below]
    return SkipReport(worlds, frames, RECIPE.inexact, tuple(rows))


def _row(drive: LoadedCard, below: float, worlds: int, frames: int, progress: Callable[[int], None]) -> SkipRow:
    tally = Tally()
    for number in range(worlds):
        play(drive, SkipLastPass(below), number, frames, tally)
        progress(frames)
    return SkipRow(
        steps=drive.choice.steps,
        below=below,
        skipped=round(len(tally.errors) / (worlds * frames), 4),
        saved=round(tally.saved / tally.spent, 4),
        residual=_quantiles(tally.residuals),
        error=_quantiles(tally.errors),
        error_rms=_quantiles(tally.rms),
    )


def play(drive: LoadedCard, skip: SkipLastPass, number: int, frames: int, tally: Tally) -> list[str]:
    """World `number` on an exact card, as a server with `skip` would show it; returns the frames' digests.

    What was learnt under one look is forgotten under another, as an intercepted loop does."""
    own, inputs = skip.start(), journey(number, frames)
    session = ParitySession(drive, 0, number, inputs, lambda look: ONE_HOT[int(look)])
    while not session.finished:
        frame = len(session.outcomes)
        if inputs[frame].shares != inputs[max(0, frame - 1)].shares:
            own = skip.start()
        session.begin()
        before: Latent | None = None
        while (plan := session.plan) is not None:
            began = time.thread_time()
            (result,) = drive.runtime.execute(plan.kind, [plan.row], [session.view()])
            took, decided = time.thread_time() - began, skip.decide(own, session.state, plan)
            if isinstance(result, Denoised):
                tally.spent += took
                if before is not None and session.state.step == drive.choice.steps - 1:
                    tally.residuals.append(_residual(result.x0_NC, before))
                before = result.x0_NC
            if isinstance(decided, Intercept):
                tally.saved += took
                _compare(drive, decided.result, result, tally)
                result = decided.result
            own = skip.note(own, session.state, result, isinstance(decided, Intercept))
            session.advance(result)
    return [outcome.digest for outcome in session.outcomes]


def journey(number: int, frames: int) -> list[ChunkInput]:
    """World `number`'s keys and looks; a look's text is its number. Sixty worlds begin in sixty looks."""
    dice = random.Random(number)
    first, second, fade = number * 7 % THEMES, dice.randrange(THEMES), FADE if number % 2 else 1
    inputs = []
    for frame, keys in enumerate(_driven(number % 5, frames, dice)):
        share = min(1.0, max(0, frame - frames // 2 + 1) / fade)
        mix = tuple((str(look), weight) for look, weight in ((first, 1 - share), (second, share)) if weight > 0)
        inputs.append(ChunkInput(keys, (0.0, 0.0), "", mix=mix))
    return inputs


def _driven(way: int, frames: int, dice: random.Random) -> list[Keys]:
    """Straight on, in bends, stop and go, any keys, or none."""
    turns = [frame // CURVES % 2 == 1 for frame in range(frames)]
    match way:
        case 0:
            return [GAS] * frames
        case 1:
            return [(1.0, 0.0, 1.0, 0.0) if turn else (0.0, 1.0, 1.0, 0.0) for turn in turns]
        case 2:
            return [BRAKE if turn else GAS for turn in turns]
        case 3:
            held, driven = NONE, []
            for _ in range(frames):
                if dice.random() < 0.2:
                    left, right, gas = (float(dice.random() < chance) for chance in (0.4, 0.4, 0.6))
                    held = (left, right, gas, 0.0)
                driven.append(held)
            return driven
        case _:
            return [NONE] * frames


def _residual(last_NC: Latent, before_NC: Latent) -> float:
    return float(np.linalg.norm(last_NC - before_NC) / max(float(np.linalg.norm(last_NC)), 1e-6))


def _compare(drive: LoadedCard, shown: DriveResult, exact: DriveResult, tally: Tally) -> None:
    shown_HWC, exact_HWC = (_decoded(drive, result) for result in (shown, exact))
    error_HWC = np.abs(shown_HWC - exact_HWC) / 255
    tally.errors.append(float(error_HWC.max()))
    tally.rms.append(float(np.sqrt(np.mean(error_HWC**2))))


def _decoded(drive: LoadedCard, result: DriveResult) -> NDArray[np.float64]:
    assert isinstance(result, Denoised)
    (decoded,) = drive.runtime.execute(StepKind.DECODE, [DecodeRow(result.x0_NC[:PICTURE_TOKENS])], [None])
    assert isinstance(decoded, Decoded)
    return decoded.frame_HWC.astype(np.float64)


def _quantiles(samples: list[float]) -> Quantiles:
    if not samples:
        return Quantiles(0, 0.0, 0.0, 0.0, 0.0)
    low, middle, high, top = (round(float(q), 4) for q in np.quantile(samples, (0.0, 0.5, 0.95, 1.0)))
    return Quantiles(len(samples), low, middle, high, top)
