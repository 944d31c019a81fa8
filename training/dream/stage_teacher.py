"""Stage `teacher`: flow matching on latents, each target frame at a noise level of its own (diffusion forcing).

A target is x = (1 - sigma) clean + sigma noise; the network predicts the clean frame; the error is weighted as an
error of the velocity, bounded. Contexts are lightly noised and labelled so, and partly damaged, as a rollout would.
Private labels of the simulator enter twice, both in training alone: a frame's noise carries the dice that made
it (dice.py), and linear heads, thrown away afterwards, read the labels off the registers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ...models.dream.card import REGISTERS
from ...models.dream.transformer import PICTURE, DreamShape, DreamTransformer
from ...models.shared.road.blocks import Spatial, Temporal
from ..drive.optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from .windows import Store, Window, frame_noise, joined, target_sigma, with_damage, with_noise

RATES = Rates(muon=0.02, adam=2e-3, warm_up=60, flat=0.4)
BETAS = (0.9, 0.97)
WINDOWS, SWITCHING = 4, 1
PREFIX, TARGETS = 10, 24  # frames before the first target, targets
LARGEST_NOISE = (0.3, 0.5, 0.5, 1.0)  # of a row's contexts
DAMAGED, ONES = 0.3, 0.5
SHORT_REACH = 0.25  # share of rows that see but a part of the window
STILL_OPEN = 0.05  # variance of a frame that its past does not explain, about: sets the weight of low levels
HEAVIEST = 4.0
LABELS = 0.3  # weight of the private labels' errors
TOKEN_WEIGHT = torch.ones(PICTURE)
TOKEN_WEIGHT[32:35] = 3.0  # the speed bar
TOKEN_WEIGHT[8:24] = 1.5  # where the road and objects come into view
CHECKPOINT_EVERY = 50


class Learner(nn.Module):
    """The network and the heads that are thrown away after training."""

    def __init__(self, shape: DreamShape, labels: int = 96) -> None:
        super().__init__()
        self.network = DreamTransformer(shape)
        self.of_target = nn.Linear(REGISTERS * shape.width, labels)
        self.of_context = nn.Linear(REGISTERS * shape.width, labels)


@dataclass(frozen=True, slots=True)
class Report:
    iteration: int
    pure: float  # mean squared error at sigma 1
    partly: float  # and below
    labels: float
    context_labels: float
    held: tuple[float, ...] | None  # of held-out windows, averaged model, at sigma 1 and .5


def hidden_matrices(model: DreamTransformer) -> Iterator[Tensor]:
    """The matrices inside the blocks, which Muon trains."""
    for block in (model.context, *model.blocks):
        if isinstance(block, Spatial):
            yield from (block.qkv.weight, block.out.weight, block.up.weight, block.down.weight)
        elif isinstance(block, Temporal):
            yield from (block.query.weight, block.out.weight, block.kept.weight, block.own.weight)


def velocity_weight(sigma: Tensor) -> Tensor:
    """How much the error of a clean frame counts, so that about the velocity's error counts alike at all levels."""
    return ((STILL_OPEN * (1 - sigma).square() + sigma.square()) / sigma.square()).clamp(max=HEAVIEST)


def windows_of(store: Store, rng: np.random.Generator, windows: int, switching: int, frames: int) -> Window:
    """Windows of which `switching` see a look change."""
    switches = store.sample_switches(switching, frames, (3, frames - 6), rng)
    return joined([switches, store.sample(windows - switching, frames, rng)])


def loss_of(
    learner: Learner, context_BFPC: Tensor, truth: Window, sigma_BT: Tensor, largest_B: Tensor, g: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Squared error of each target frame [B, T], and of the labels read off targets and contexts."""
    frames, targets = truth.dice_BFD.shape[1], sigma_BT.shape[1]
    context, context_sigma = with_noise(context_BFPC, largest_B, g)
    x0 = truth.latents_BFPC[:, -targets:]
    s = sigma_BT[..., None, None]
    x = (1 - s) * x0 + s * torch.randn(x0.shape, generator=g)
    noise = frame_noise(truth.dice_BFD, g)
    sigma_BF = torch.cat([sigma_BT.new_zeros(len(x), frames - targets), sigma_BT], 1)
    window = learner.network.shape.window
    reach_B = torch.where(
        torch.rand(len(x), generator=g) < SHORT_REACH,
        torch.randint(window + 1, (len(x),), generator=g),
        torch.full((len(x),), window),
    )
    with torch.autocast("cpu", torch.bfloat16):
        predicted, seen = learner.network.two_stream(context, x, context_sigma, truth.cond(noise, sigma_BF), reach_B)
        of_target, of_context = learner.of_target(seen.target.flatten(2)), learner.of_context(seen.context.flatten(2))
    missed = ((predicted.float() - x0).square().mean(3) * TOKEN_WEIGHT).mean(2)
    labels = (of_target.float() - truth.memory_BFM[:, -targets:]).square().mean()
    context_labels = (of_context.float() - truth.memory_BFM[:, 2:-1]).square().mean()
    return missed, labels, context_labels


def train(
    store: Store,
    held: Store,
    shape: DreamShape,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[Report], None],
) -> Learner:
    """Train for `total` iterations (resuming from `path`) and return the averaged learner."""
    torch.manual_seed(seed)
    learner = Learner(shape)
    average = averaged_copy(learner)
    optimiser = optimiser_for(list(hidden_matrices(learner.network)), learner, RATES, BETAS)
    first = resume(path, learner, average, optimiser)
    rng, g = np.random.default_rng([seed, first]), torch.Generator().manual_seed(seed * 1_000_003 + first)
    noise, seen = torch.tensor(LARGEST_NOISE), []
    for iteration in range(first, total):
        truth = windows_of(store, rng, WINDOWS, SWITCHING, PREFIX + TARGETS)
        sigma = target_sigma(WINDOWS, TARGETS, ONES, g)
        context = with_damage(truth.latents_BFPC, DAMAGED, g)
        missed, labels, context_labels = loss_of(learner, context, truth, sigma, noise, g)
        loss = (missed * velocity_weight(sigma)).mean() + LABELS * (labels + context_labels)
        torch.autograd.backward(loss)
        optimiser.step(iteration, total)
        update_average(average, learner, min(0.997, iteration / (iteration + 20)))
        pure = sigma == 1
        seen.append([float(x.detach()) for x in (missed[pure].mean(), missed[~pure].mean(), labels, context_labels)])
        if (iteration + 1) % CHECKPOINT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, learner, average, optimiser)
            figures = held_errors(average, held) if (iteration + 1) % (4 * CHECKPOINT_EVERY) == 0 else None
            pure_mean, partly, of_labels, of_context = np.nanmean(seen, 0).tolist()
            report(Report(iteration + 1, pure_mean, partly, of_labels, of_context, figures))
            seen.clear()
    return average


def held_errors(learner: Learner, held: Store) -> tuple[float, ...]:
    """Mean squared errors on held-out windows with clean contexts: at sigma 1, at .5, and at 1 with other dice.

    The averaged learner asks for no gradients, so none are kept."""
    rng, g = np.random.default_rng(1), torch.Generator().manual_seed(1)
    truth = held.sample(12, PREFIX + TARGETS, rng)
    other = dataclasses.replace(truth, dice_BFD=torch.randn(truth.dice_BFD.shape, generator=g))
    figures = []
    for window, level in ((truth, 1.0), (truth, 0.5), (other, 1.0)):
        sigma = torch.full((12, TARGETS), level)
        missed, _, _ = loss_of(learner, window.latents_BFPC, window, sigma, torch.zeros(12), g)
        figures.append(float(missed.mean()))
    return tuple(figures)
