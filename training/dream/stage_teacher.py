"""Stage `teacher`: flow matching on latents, each target frame at a noise level of its own (diffusion forcing).

A target is x = (1 - sigma) clean + sigma noise; the network predicts the clean frame; the error is weighted as an
error of the velocity, bounded. Contexts are lightly noised and labelled so, and partly damaged, as a rollout would.
What the pictures are of is in the recurrent tokens (stage_recurrence.py), which stay as they are: a frame that is known
by its tokens and its past has one right picture, so that there is no mean of many to fall back to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...models.dream.transformer import PICTURE, DreamTransformer
from ...models.shared.road.blocks import Spatial, Temporal
from ..drive.optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from .windows import Store, Window, frame_noise, joined, target_sigma, with_damage, with_noise

RATES = Rates(muon=0.005, adam=6e-4, warm_up=30, flat=0.3)
BETAS = (0.9, 0.97)
WINDOWS, SWITCHING = 6, 1
PREFIX, TARGETS = 18, 16  # frames before the first target, targets
LARGEST_NOISE = (0.2, 0.3, 0.5, 0.5, 0.5, 1.0)  # of a row's contexts
DAMAGED, ONES = 0.3, 0.75
SHORT_REACH = 0.25  # share of rows that see but a part of the window
STILL_OPEN = 0.05  # variance of a frame that its past does not explain, about: sets the weight of low levels
HEAVIEST = 4.0
STATE_NOISE = 0.02  # on recurrent tokens
TOKEN_WEIGHT = torch.ones(PICTURE)
TOKEN_WEIGHT[32:35] = 3.0  # the speed bar
TOKEN_WEIGHT[8:24] = 1.5  # where the road and objects come into view
CHECKPOINT_EVERY = 50


@dataclass(frozen=True, slots=True)
class Report:
    iteration: int
    pure: float  # mean squared error at sigma 1
    partly: float  # and below
    held: tuple[float, ...] | None  # of held-out windows, averaged model, at sigma 1 and .5


def hidden_matrices(model: DreamTransformer) -> Iterator[Tensor]:
    """The matrices inside the blocks, which Muon trains."""
    for block in (model.context, *model.blocks):
        if isinstance(block, Spatial):
            yield from (block.qkv.weight, block.out.weight, block.up.weight, block.down.weight)
        elif isinstance(block, Temporal):
            yield from (block.query.weight, block.out.weight, block.kept.weight, block.own.weight)


def still(network: DreamTransformer) -> DreamTransformer:
    """All but what moves the recurrent tokens is trained."""
    network.requires_grad_(True)
    network.recurrent.requires_grad_(False)
    network.reader.requires_grad_(False)
    return network


def velocity_weight(sigma: Tensor) -> Tensor:
    """How much the error of a clean frame counts, so that about the velocity's error counts alike at all levels."""
    return ((STILL_OPEN * (1 - sigma).square() + sigma.square()) / sigma.square()).clamp(max=HEAVIEST)


def windows_of(store: Store, rng: np.random.Generator, windows: int, switching: int, frames: int) -> Window:
    """Windows of which `switching` see a look change."""
    switches = store.sample_switches(switching, frames, (3, frames - 6), rng)
    return joined([switches, store.sample(windows - switching, frames, rng)])


def loss_of(
    network: DreamTransformer,
    context_BFPC: Tensor,
    truth: Window,
    sigma_BT: Tensor,
    largest_B: Tensor,
    g: torch.Generator,
) -> Tensor:
    """Squared error of each target frame [B, T]."""
    frames, targets = truth.dice_BFD.shape[1], sigma_BT.shape[1]
    context, context_sigma = with_noise(context_BFPC, largest_B, g)
    x0 = truth.latents_BFPC[:, -targets:]
    s = sigma_BT[..., None, None]
    x = (1 - s) * x0 + s * torch.randn(x0.shape, generator=g)
    sigma_BF = torch.cat([sigma_BT.new_zeros(len(x), frames - targets), sigma_BT], 1)
    window = network.shape.window
    reach_B = torch.where(
        torch.rand(len(x), generator=g) < SHORT_REACH,
        torch.randint(window + 1, (len(x),), generator=g),
        torch.full((len(x),), window),
    )
    cond = truth.cond(frame_noise(truth.dice_BFD, g), sigma_BF)
    cond = dataclasses.replace(
        cond, state_BFR=cond.state_BFR + STATE_NOISE * torch.randn(cond.state_BFR.shape, generator=g)
    )
    with torch.autocast("cpu", torch.bfloat16):
        predicted = network.two_stream(context, x, context_sigma, cond, reach_B)
    return ((predicted.float() - x0).square().mean(3) * TOKEN_WEIGHT).mean(2)


def train(
    store: Store,
    held: Store,
    network: DreamTransformer,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[Report], None],
) -> DreamTransformer:
    """Train for `total` iterations (resuming from `path`) and return the averaged network."""
    torch.manual_seed(seed)
    average = averaged_copy(network)
    optimiser = optimiser_for(list(hidden_matrices(network)), network, RATES, BETAS)
    first = resume(path, network, average, optimiser)
    rng, g = np.random.default_rng([seed, first]), torch.Generator().manual_seed(seed * 1_000_003 + first)
    noise, seen = torch.tensor(LARGEST_NOISE), []
    for iteration in range(first, total):
        truth = windows_of(store, rng, WINDOWS, SWITCHING, PREFIX + TARGETS)
        sigma = target_sigma(WINDOWS, TARGETS, ONES, g)
        context = with_damage(truth.latents_BFPC, DAMAGED, g)
        missed = loss_of(network, context, truth, sigma, noise, g)
        torch.autograd.backward((missed * velocity_weight(sigma)).mean())
        optimiser.step(iteration, total)
        update_average(average, network, min(0.997, iteration / (iteration + 20)))
        pure = sigma == 1
        seen.append([float(x.detach()) for x in (missed[pure].mean(), missed[~pure].mean())])
        if (iteration + 1) % CHECKPOINT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, network, average, optimiser)
            figures = held_errors(average, held) if (iteration + 1) % (2 * CHECKPOINT_EVERY) == 0 else None
            pure_mean, partly = np.nanmean(seen, 0).tolist()
            report(Report(iteration + 1, pure_mean, partly, figures))
            seen.clear()
    return average


def held_errors(network: DreamTransformer, held: Store) -> tuple[float, ...]:
    """Mean squared errors on held-out windows with clean contexts: at sigma 1, at .5, and at 1 with other tokens."""
    rng, g = np.random.default_rng(1), torch.Generator().manual_seed(1)
    truth = held.sample(12, PREFIX + TARGETS, rng)
    other = dataclasses.replace(truth, state_BFR=truth.state_BFR.flip(0))
    figures = []
    for window, level in ((truth, 1.0), (truth, 0.5), (other, 1.0)):
        sigma = torch.full((12, TARGETS), level)
        missed = loss_of(network, window.latents_BFPC, window, sigma, torch.zeros(12), g)
        figures.append(float(missed.mean()))
    return tuple(figures)
