"""Stage `student`: a few-step student learns from the teacher and the simulator on its own rollouts.

A pool of sessions dreams on under recorded keys, looks and dice; because the dice are in the noise, the simulator's
frames stay what the noise means, so they are targets of the student's frames for as long as the two worlds agree.
Each turn a part of the pool is trained on:

    young sessions   the simulator's frame is the target; a far miss pulls less than its square
    all sessions     the teacher's many steps from the same noise under the student's own past are the target: a
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

from ...models.dream.transformer import PICTURE, CondBF, DreamTransformer
from ..drive.optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from .rollout import go_on, sampled, sigmas_of
from .stage_teacher import (
    BETAS,
    DAMAGED,
    LABELS,
    TOKEN_WEIGHT,
    Learner,
    hidden_matrices,
    loss_of,
    velocity_weight,
)
from .stage_teacher import sampled as windows_of
from .windows import Store, Window, register_noise, target_sigma, with_damage

RATES = Rates(muon=0.008, adam=8e-4, warm_up=20, flat=0.4)
GIVEN, STRIDE = 34, 10  # frames a session starts from; frames dreamed each turn, all of which are targets
SESSIONS, SWITCHING = 8, 3
OLDEST = (10, 120)  # frames a session dreams before it starts anew, at most: at first, and from RAMP on
RAMP = 0.5
RECORDED_EVERY, RECORDED = 3, 4  # turns, rows
STEPS, STEP_SHARE = (1, 2, 4), (0.7, 0.2, 0.1)  # of the rollouts
TEACHER_STEPS = 4
TAUGHT = 0.5  # weight of the consistency loss
YOUNG = 40  # frames after which the simulator's frame counts less
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
    """Sessions that dream along recorded episodes: where each is, its own last GIVEN pictures, its registers' noise."""

    store: Store
    rng: np.random.Generator
    g: torch.Generator
    places: list[tuple[int, int, int]] = field(default_factory=list)  # shard, episode, first of the GIVEN frames
    ages: list[int] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    own_BFPC: Tensor = field(default_factory=lambda: torch.empty(0))
    registers_BFRC: Tensor = field(default_factory=lambda: torch.empty(0))

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
            registers = register_noise(window.dice_BFD, self.g)
            if held:
                self.places[row], self.ages[row], self.limits[row] = place, 0, limit
                self.own_BFPC[row], self.registers_BFRC[row] = window.latents_BFPC[0], registers[0]
            else:
                self.places.append(place)
                self.ages.append(0)
                self.limits.append(limit)
                self.own_BFPC = torch.cat([self.own_BFPC, window.latents_BFPC])
                self.registers_BFRC = torch.cat([self.registers_BFRC, registers])

    def turn(self, model: DreamTransformer, sigmas: tuple[float, ...]) -> tuple[Window, Tensor, Tensor, Tensor]:
        """Dream STRIDE frames on: the truth of all GIVEN + STRIDE frames, own pictures, registers, ages at the end."""
        truth = self.store.cut(self.places, GIVEN + STRIDE)
        fresh = register_noise(truth.dice_BFD[:, GIVEN:], self.g)
        registers = torch.cat([self.registers_BFRC, fresh], 1)
        cond = CondBF(truth.controls_BFK, truth.look_BFL, torch.zeros(registers.shape[:2]))
        new = go_on(model, self.own_BFPC, registers, cond, sigmas, self.g)
        own = torch.cat([self.own_BFPC, new], 1)
        self.own_BFPC, self.registers_BFRC = own[:, STRIDE:].clone(), registers[:, STRIDE:].clone()
        self.ages = [age + STRIDE for age in self.ages]
        self.places = [(s, e, t + STRIDE) for s, e, t in self.places]
        return truth, own, registers, torch.tensor(self.ages)


def train(
    store: Store,
    teacher: Learner,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[Report], None],
) -> Learner:
    """Train for `total` turns (resuming from `path`) and return the averaged learner."""
    torch.manual_seed(seed)
    learner = copy.deepcopy(teacher).requires_grad_(True)
    average = averaged_copy(learner)
    optimiser = optimiser_for(list(hidden_matrices(learner.network)), learner, RATES, BETAS)
    first = resume(path, learner, average, optimiser)
    guide = copy.deepcopy(teacher.network).to(torch.bfloat16).requires_grad_(False)
    rng, g = np.random.default_rng([seed, 7, first]), torch.Generator().manual_seed(seed * 1_000_003 + first)
    pool = Pool(store, rng, g)
    seen: list[tuple[float, float, float, float]] = []
    oldest = OLDEST[0]
    for iteration in range(first, total):
        done = min(1.0, iteration / (total * RAMP))
        oldest = round(OLDEST[0] + (OLDEST[1] - OLDEST[0]) * done)
        pool.renew(oldest)
        dreamer = copy.deepcopy(learner.network).to(torch.bfloat16).requires_grad_(False)
        steps = int(rng.choice(STEPS, p=STEP_SHARE))
        truth, own, registers, ages = pool.turn(dreamer, sigmas_of(steps))
        missed, taught = own_losses(learner, guide, truth, own, registers, ages, steps, g)
        weight_B1 = torch.where(ages <= YOUNG, 1.0, YOUNG / ages)[:, None]
        loss = (missed * weight_B1).mean() + TAUGHT * taught.mean()
        recorded = float("nan")
        if iteration % RECORDED_EVERY == 0:
            loss_recorded, recorded = _recorded(learner, store, rng, g)
            loss = loss + loss_recorded
        torch.autograd.backward(loss)
        optimiser.step(iteration, total)
        update_average(average, learner, 0.99)
        young = ages <= YOUNG
        both = (float(missed[young].detach().mean()), float(missed[~young].detach().mean()))
        seen.append((*both, float(taught.detach().mean()), recorded))
        if (iteration + 1) % CHECKPOINT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, learner, average, optimiser)
            young_mean, old_mean, taught_mean, recorded_mean = np.nanmean(seen, 0).tolist()
            report(Report(iteration + 1, young_mean, old_mean, taught_mean, recorded_mean, oldest))
            seen.clear()
    return average


def own_losses(
    learner: Learner,
    guide: DreamTransformer,
    truth: Window,
    own: Tensor,
    registers: Tensor,
    ages: Tensor,
    steps: int,
    g: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Errors [B, STRIDE] of frames after the student's own past: to the simulator's, and to the teacher's sample."""
    rows, frames = own.shape[:2]
    level = torch.rand(rows, frames, generator=g) * CONTEXT_NOISE * torch.rand(rows, 1, generator=g)
    s = level[..., None, None]
    context = torch.cat([(1 - s) * own + s * torch.randn(own.shape, generator=g), registers], 2)
    noise = torch.randn(rows, STRIDE, PICTURE, own.shape[-1], generator=g)
    x0, reach = truth.latents_BFPC[:, GIVEN:], torch.full((rows,), learner.network.shape.window)
    now = registers[:, GIVEN:]

    def predicted(network: DreamTransformer, x: Tensor, sigma: Tensor) -> Tensor:
        kind = network.place.dtype
        levels = torch.cat([sigma.new_zeros(rows, GIVEN), sigma], 1)
        cond = CondBF(truth.controls_BFK.to(kind), truth.look_BFL.to(kind), levels.to(kind))
        x = torch.cat([x, now], 2).to(kind)
        made, _ = network.two_stream(context.to(kind), x, level.to(kind), cond, reach)
        return made.float()

    sigma = torch.ones(rows, STRIDE)
    if steps > 1:
        chosen = torch.randint(steps, (rows, STRIDE), generator=g)
        sigma = 1 - chosen / steps
    s = sigma[..., None, None]
    with torch.autocast("cpu", torch.bfloat16):
        made = predicted(learner.network, (1 - s) * x0 + s * noise, sigma)
    missed = _softened(made - x0)
    sample = sampled(
        noise.flatten(0, 1),
        sigmas_of(TEACHER_STEPS),
        lambda x, at: predicted(guide, x.view(noise.shape), torch.full((rows, STRIDE), at)).flatten(0, 1),
    ).view(noise.shape)
    pure = (sigma == 1).float()
    return missed, _softened(made - sample) * pure


def _softened(missed_BTPC: Tensor) -> Tensor:
    """An error that grows slower than the square of a token's miss."""
    return (((missed_BTPC.square().mean(3) + SOFT) ** 0.75) * TOKEN_WEIGHT).mean(2)


def _recorded(learner: Learner, store: Store, rng: np.random.Generator, g: torch.Generator) -> tuple[Tensor, float]:
    truth = windows_of(store, rng, RECORDED, 1, GIVEN)
    targets = GIVEN - 14
    sigma = target_sigma(RECORDED, targets, 0.5, g)
    context = with_damage(truth.latents_BFPC, DAMAGED, g)
    missed, labels, context_labels = loss_of(learner, context, truth, sigma, torch.full((RECORDED,), 0.5), g)
    loss = (missed * velocity_weight(sigma)).mean() + LABELS * (labels + context_labels)
    return loss, float(missed[sigma == 1].detach().mean())
