"""Stage `student`: a few-step student learns from the teacher and the simulator on its own rollouts.

A pool of sessions dreams on under recorded keys, looks, dice and recurrent tokens; because tokens say what a frame is
of, the simulator's frames stay right however long a session has dreamed, and it learns to lead its pictures back.
Each turn is trained on:

    all sessions     the simulator's frame is the target; a far miss pulls less than its square
    a few of them    the teacher's many steps from the same noise under the student's own past are the target: a
                     consistency loss, whose targets are samples, so that there is no mean to fall back to
    recorded rows    the teacher's own loss at all noise levels, so that 2 and 4 steps stay what they are
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...models.dream.transformer import DreamTransformer
from ..drive.optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from .rollout import go_on, sampled, sigmas_of
from .stage_teacher import (
    BETAS,
    DAMAGED,
    TOKEN_WEIGHT,
    hidden_matrices,
    loss_of,
    still,
    velocity_weight,
    windows_of,
)
from .windows import Store, Window, frame_noise, target_sigma, with_damage

RATES = Rates(muon=0.004, adam=5e-4, warm_up=20, flat=0.3)
GIVEN, STRIDE = 34, 16  # frames a session starts from; frames dreamed each turn, all of which are targets
SEEN = 18  # of the given frames, in the loss: what a target looks back to costs as much as the target
SESSIONS, SWITCHING = 6, 2
OLDEST = (48, 320)  # frames a session dreams before it starts anew, at most: at first, and from RAMP on
RAMP = 0.7
RECORDED_EVERY, RECORDED = 4, 4  # turns, rows
STEPS, STEP_SHARE = (1, 2, 4), (0.7, 0.2, 0.1)  # of the rollouts
TEACHER_STEPS, TAUGHT_ROWS, TAUGHT_EVERY = 4, 2, 8
TAUGHT = 0.25  # weight of the consistency loss
YOUNG = 48  # frames; older sessions are reported apart
CONTEXT_NOISE = 0.15  # largest, on own contexts
SOFT = 1e-3  # keeps the power smooth at zero
CHECKPOINT_EVERY = 20


@dataclass(frozen=True, slots=True)
class Report:
    """Means since the last report: error at sigma 1 on own contexts (young, old), to the teacher, on recorded ones."""

    iteration: int
    young: float
    old: float
    taught: float
    recorded: float
    oldest: float


@dataclass(slots=True)
class Pool:
    """Sessions that dream along recorded episodes: where each is, its own last GIVEN pictures, and their noise."""

    store: Store
    rng: np.random.Generator
    g: torch.Generator
    places: list[tuple[int, int, int]] = field(default_factory=list)  # shard, episode, first of the GIVEN frames
    ages: list[int] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    own_BFPC: Tensor = field(default_factory=lambda: torch.empty(0))
    noise_BFZ: Tensor = field(default_factory=lambda: torch.empty(0))

    def renew(self, oldest: int) -> None:
        """Start sessions anew that are too old or at their episode's end."""
        frames = GIVEN + STRIDE
        for row in range(SESSIONS):
            held = row < len(self.places)
            if held:
                shard, _, first = self.places[row]
                length = self.store.shards[shard].dice.shape[1]
                if self.ages[row] < self.limits[row] and first + frames <= length:
                    continue
            switches = row < SWITCHING
            place = (
                self.store.switch_place(frames, (GIVEN - 6, GIVEN + STRIDE - 2), self.rng)
                if switches
                else self.store.place(frames, self.rng)
            )
            limit = int(self.rng.integers(STRIDE, oldest + 1))
            window = self.store.cut([place], GIVEN)
            noise = frame_noise(window.dice_BFD, self.g)
            if held:
                self.places[row], self.ages[row], self.limits[row] = place, 0, limit
                self.own_BFPC[row], self.noise_BFZ[row] = window.latents_BFPC[0], noise[0]
            else:
                self.places.append(place)
                self.ages.append(0)
                self.limits.append(limit)
                self.own_BFPC = torch.cat([self.own_BFPC, window.latents_BFPC])
                self.noise_BFZ = torch.cat([self.noise_BFZ, noise])

    def turn(self, model: DreamTransformer, sigmas: tuple[float, ...]) -> tuple[Window, Tensor, Tensor, Tensor]:
        """Dream STRIDE frames on: the truth of all GIVEN + STRIDE frames, own pictures, noise, ages at the end."""
        truth = self.store.cut(self.places, GIVEN + STRIDE)
        noise = torch.cat([self.noise_BFZ, frame_noise(truth.dice_BFD[:, GIVEN:], self.g)], 1)
        new = go_on(model, self.own_BFPC, truth.cond(noise, torch.zeros(noise.shape[:2])), sigmas, self.g)
        own = torch.cat([self.own_BFPC, new], 1)
        self.own_BFPC, self.noise_BFZ = own[:, STRIDE:].clone(), noise[:, STRIDE:].clone()
        self.ages = [age + STRIDE for age in self.ages]
        self.places = [(s, e, t + STRIDE) for s, e, t in self.places]
        return truth, own, noise, torch.tensor(self.ages)


def train(
    store: Store,
    teacher: DreamTransformer,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[Report], None],
) -> DreamTransformer:
    """Train for `total` turns (resuming from `path`) and return the averaged learner."""
    torch.manual_seed(seed)
    network = still(copy.deepcopy(teacher))
    average = averaged_copy(network)
    optimiser = optimiser_for(list(hidden_matrices(network)), network, RATES, BETAS)
    first = resume(path, network, average, optimiser)
    guide = copy.deepcopy(teacher).to(torch.bfloat16).requires_grad_(False)
    rng, g = np.random.default_rng([seed, 7, first]), torch.Generator().manual_seed(seed * 1_000_003 + first)
    pool = Pool(store, rng, g)
    seen: list[tuple[float, float, float, float]] = []
    oldest = OLDEST[0]
    for iteration in range(first, total):
        done = min(1.0, iteration / (total * RAMP))
        oldest = round(OLDEST[0] + (OLDEST[1] - OLDEST[0]) * done)
        pool.renew(oldest)
        dreamer = copy.deepcopy(network).to(torch.bfloat16).requires_grad_(False)
        steps = int(rng.choice(STEPS, p=STEP_SHARE))
        truth, own, noise, ages = pool.turn(dreamer, sigmas_of(steps))
        teaches = guide if iteration % TAUGHT_EVERY == 0 else None
        missed, taught = own_losses(network, teaches, own_past(truth, own, noise, g), steps, g)
        loss = missed.mean()
        if teaches is not None:
            loss = loss + TAUGHT * taught.mean()
        recorded = float("nan")
        if iteration % RECORDED_EVERY == 0:
            loss_recorded, recorded = _recorded(network, store, rng, g)
            loss = loss + loss_recorded
        torch.autograd.backward(loss)
        optimiser.step(iteration, total)
        update_average(average, network, 0.99)
        young = ages <= YOUNG
        both = (_mean(missed[young]), _mean(missed[~young]))
        seen.append((*both, _mean(taught), recorded))
        if (iteration + 1) % CHECKPOINT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, network, average, optimiser)
            table = np.array(seen)
            young_mean, old_mean, taught_mean, recorded_mean = (
                float(np.nanmean(column)) if np.isfinite(column).any() else float("nan") for column in table.T
            )
            report(Report(iteration + 1, young_mean, old_mean, taught_mean, recorded_mean, oldest))
            seen.clear()
    return average


@dataclass(frozen=True, slots=True)
class OwnPast:
    """Rows of the pool as two_stream takes them: the student's own frames, lightly noised, and what made them."""

    context_BFPC: Tensor
    level_BF: Tensor
    truth: Window
    noise_BFZ: Tensor

    def rows(self, first: int) -> OwnPast:
        """The rows from `first` on."""
        truth = self.truth.rows(first, len(self.level_BF))
        return OwnPast(self.context_BFPC[first:], self.level_BF[first:], truth, self.noise_BFZ[first:])

    def predicted(self, network: DreamTransformer, x_BTPC: Tensor, sigma_BT: Tensor) -> Tensor:
        """Clean pictures of the last STRIDE frames, in the network's own precision."""
        kind, rows = network.place.dtype, len(x_BTPC)
        levels = torch.cat([sigma_BT.new_zeros(rows, SEEN), sigma_BT], 1)
        cond = self.truth.cond(self.noise_BFZ, levels).to(kind)
        reach = torch.full((rows,), network.shape.window)
        made = network.two_stream(self.context_BFPC.to(kind), x_BTPC.to(kind), self.level_BF.to(kind), cond, reach)
        return made.float()


def own_past(truth: Window, own: Tensor, noise_BFZ: Tensor, g: torch.Generator) -> OwnPast:
    """The last SEEN given frames and the dreamed ones, lightly noised."""
    first = GIVEN - SEEN
    own = own[:, first:]
    rows, frames = own.shape[:2]
    level = torch.rand(rows, frames, generator=g) * CONTEXT_NOISE * torch.rand(rows, 1, generator=g)
    s = level[..., None, None]
    context = (1 - s) * own + s * torch.randn(own.shape, generator=g)
    return OwnPast(context, level, truth.part(first, frames), noise_BFZ[:, first:])


def own_losses(
    network: DreamTransformer, guide: DreamTransformer | None, past: OwnPast, steps: int, g: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Errors of frames after the student's own past: to the simulator's [B, T]; of the last rows to the teacher's.

    Without a guide there are none of the latter. The first rows practise the later ones of `steps` steps.
    """
    x0 = past.truth.latents_BFPC[:, SEEN:]
    rows = len(x0)
    noise = torch.randn(x0.shape, generator=g)
    sigma = torch.ones(rows, STRIDE)
    if steps > 1:
        sigma[: rows - TAUGHT_ROWS] = 1 - torch.randint(steps, (rows - TAUGHT_ROWS, STRIDE), generator=g) / steps
    s = sigma[..., None, None]
    with torch.autocast("cpu", torch.bfloat16):
        made = past.predicted(network, (1 - s) * x0 + s * noise, sigma)
    missed = softened(made - x0)
    if guide is None:
        return missed, missed.new_zeros(0)
    last = past.rows(rows - TAUGHT_ROWS)
    rest = torch.ones(TAUGHT_ROWS, STRIDE)
    sample = sampled(noise[-TAUGHT_ROWS:], sigmas_of(TEACHER_STEPS), lambda x, at: last.predicted(guide, x, rest * at))
    return missed, softened(made[-TAUGHT_ROWS:] - sample)


def softened(missed_BTPC: Tensor) -> Tensor:
    """An error that grows slower than the square of a token's miss."""
    return (((missed_BTPC.square().mean(3) + SOFT) ** 0.75) * TOKEN_WEIGHT).mean(2)


def _recorded(
    network: DreamTransformer, store: Store, rng: np.random.Generator, g: torch.Generator
) -> tuple[Tensor, float]:
    truth = windows_of(store, rng, RECORDED, 1, GIVEN)
    sigma = target_sigma(RECORDED, GIVEN - 18, 0.3, g)
    context = with_damage(truth.latents_BFPC, DAMAGED, g)
    missed = loss_of(network, context, truth, sigma, torch.full((RECORDED,), 0.5), g)
    return (missed * velocity_weight(sigma)).mean(), float(missed[sigma == 1].detach().mean())


def _mean(values: Tensor) -> float:
    """NaN where there are none."""
    return float(values.detach().mean())
