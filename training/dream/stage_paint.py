"""Stage `paint`: a picture from its recurrent tokens alone, single frames in any order, before any past is listened to.

Tokens and look determine the picture, so this is a plain regression, and by far the fastest way to sharp pictures: no
windows, no contexts. What it reaches here is where a dream that has lost its past comes back to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...models.dream.transformer import CondB, DreamTransformer
from ..drive.optimise import Optimiser, Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from ..drive.stage_paint import painting_matrices
from .data import Shard, labels_of
from .stage_recurrence import Recurrence
from .stage_teacher import still

RATES = Rates(muon=0.004, adam=8e-4, warm_up=40, flat=0.3)
BETAS = (0.9, 0.97)
FRAMES, STATE_NOISE, CHECKPOINT_EVERY = 64, 0.02, 100


@dataclass(frozen=True, slots=True)
class Frames:
    """Latents [B, P, C] of frames in any order, and what each is made of."""

    latents: Tensor
    cond: CondB


def frames_of(shards: list[Shard], recurrence: Recurrence, count: int, noise: int, rng: np.random.Generator) -> Frames:
    numbers = rng.integers(len(shards), size=count)
    episodes, times = shards[0].dice.shape[:2]
    e, t = rng.integers(episodes, size=count), rng.integers(times, size=count)
    places = list(zip(numbers, e, t, strict=True))
    latents = np.stack([shards[n].latents[i, at] for n, i, at in places]).astype(np.float32)
    keys = np.stack([shards[n].controls[i, at] for n, i, at in places]).astype(np.float32)
    look = np.stack([shards[n].look[i, at] for n, i, at in places])
    labels = np.stack([labels_of(shards[n], i, at) for n, i, at in places])
    chance = rng.standard_normal((count, noise)).astype(np.float32)
    state = recurrence.writes(torch.from_numpy(labels))
    cond = CondB(torch.from_numpy(keys), torch.from_numpy(look), torch.from_numpy(chance), state)
    return Frames(torch.from_numpy(latents), cond)


def train(
    shards: list[Shard],
    held: list[Shard],
    recurrence: Recurrence,
    network: DreamTransformer,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[int, float, float], None],
) -> DreamTransformer:
    """`report` gets the iteration, the error since the last report and that of held-out frames."""
    torch.manual_seed(seed)
    still(network)
    average = averaged_copy(network)
    optimised = optimiser(network)
    first, losses = resume(path, network, average, optimised), list[float]()
    rng, g = np.random.default_rng([seed, 16, first]), torch.Generator().manual_seed(seed * 1_000_003 + first)
    checked = frames_of(held, recurrence, 160, network.shape.noise, np.random.default_rng(1))
    for iteration in range(first, total):
        frames = frames_of(shards, recurrence, FRAMES, network.shape.noise, rng)
        loss = painting_error(network, frames, STATE_NOISE, g)
        torch.autograd.backward(loss)
        optimised.step(iteration, total)
        update_average(average, network, min(0.99, iteration / (iteration + 20)))
        losses.append(float(loss.detach()))
        if (iteration + 1) % CHECKPOINT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, network, average, optimised)
            report(iteration + 1, float(np.mean(losses)), float(painting_error(average, checked, 0.0, g)))
            losses.clear()
    return average


def optimiser(network: DreamTransformer) -> Optimiser:
    """For what `still` leaves to train."""
    return optimiser_for(list(painting_matrices(network.blocks)), network, RATES, BETAS)


def painting_error(network: DreamTransformer, frames: Frames, state_noise: float, g: torch.Generator) -> Tensor:
    """Mean squared error of pictures painted from tokens that are off by up to `state_noise`."""
    cond, rows = frames.cond, len(frames.latents)
    off = state_noise * torch.rand(rows, 1, generator=g) * torch.randn(cond.state_BR.shape, generator=g)
    cond = CondB(cond.controls_BK, cond.look_BL, cond.noise_BZ, cond.state_BR + off)
    with torch.autocast("cpu", torch.bfloat16):
        painted = network.paint(torch.randn(frames.latents.shape, generator=g), cond)
    return (painted.float() - frames.latents).square().mean()
