"""Stage `seeing`: what each place of a picture is told of the recurrent tokens, learned from drive's painter.

The painter has a fixed camera, which knows the simulator's constants. Here a network learns to tell each token of a
frame what that camera would have told it, from recurrent tokens and look alone; later stages train it on with the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...models.dream.recurrent import Spread
from ...models.dream.shape import DreamShape
from ...models.drive.memory import CHANNELS, MEMORY_TOKENS
from ...models.drive.transformer import DriveTransformer
from ...models.shared.road.look import ONE_HOT
from ..drive.chains import resume_network, save_network, trained
from ..drive.optimise import averaged_copy, step_once, update_average
from .stage_recurrence import Drives, Recurrence

RATE, BATCH, NOISE, REPORT_EVERY = 1.5e-3, 256, 0.03, 100
MIXED = 0.15  # share of frames whose look is between two
CHUNK = 256


@dataclass(frozen=True, slots=True)
class Views:
    """Private labels [N, M] and looks [N, L] of frames, and what the painter's camera tells each token [N, T, W]."""

    labels: Tensor
    look: Tensor
    told: Tensor


@torch.no_grad()
def views(painter: DriveTransformer, drives: Drives, frames: int, seed: int) -> Views:
    """Of frames at random, under looks at random."""
    rng = np.random.default_rng([seed, 14])
    s, t = rng.integers(drives.labels.shape[0], size=frames), rng.integers(drives.labels.shape[1], size=frames)
    labels = torch.from_numpy(drives.labels[s, t].astype(np.float32))
    share = np.where(rng.random(frames) < MIXED, rng.random(frames), 0.0).astype(np.float32)[:, None]
    first, second = ONE_HOT[rng.integers(len(ONE_HOT), size=(2, frames))]
    look = torch.from_numpy((1 - share) * first + share * second)
    told = []
    for begins in range(0, frames, CHUNK):
        part = slice(begins, begins + CHUNK)
        memory = labels[part, : MEMORY_TOKENS * CHANNELS].view(-1, MEMORY_TOKENS, CHANNELS)
        picture = painter.seeing(painter.camera(memory, look[part]))
        of_memory = painter.inward.memory(torch.cat([memory] * 3, -1))
        told.append(torch.cat([picture, of_memory], 1).half())
    return Views(labels, look, torch.cat(told))


def train(
    data: Views,
    recurrence: Recurrence,
    shape: DreamShape,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[int, float, float], None],
) -> Spread:
    """`report` gets the iteration and the share of the variance that is missed, here and on the last frames.

    Resumes from `path`.
    """
    torch.manual_seed(seed)
    spread = Spread(shape)
    first = resume_network(path, spread)
    average, rng = averaged_copy(spread), np.random.default_rng([seed, 15, first])
    optimiser = torch.optim.AdamW(spread.parameters(), lr=RATE, weight_decay=1e-3, betas=(0.9, 0.98))
    held, variance, losses = len(data.look) // 50, float(data.told[:2000].float().var(0).mean()), list[float]()
    for iteration in range(first, total):
        picked = torch.from_numpy(rng.integers(len(data.look) - held, size=BATCH))
        state = recurrence.writes(data.labels[picked])
        state = state + NOISE * torch.rand(BATCH, 1) * torch.randn_like(state)
        with torch.autocast("cpu", torch.bfloat16):
            told = spread(state, data.look[picked])
        loss = (told.float() - data.told[picked]).square().mean() / variance
        step_once(optimiser, loss, RATE, iteration / total, iteration)
        update_average(average, spread, min(0.99, (iteration - first) / (iteration - first + 20)))
        losses.append(float(loss.detach()))
        if (iteration + 1) % REPORT_EVERY == 0 or iteration + 1 == total:
            made = average(recurrence.writes(data.labels[-held:]), data.look[-held:])
            missed = float((made - data.told[-held:]).square().mean()) / variance
            report(iteration + 1, float(np.mean(losses)), missed)
            losses.clear()
            save_network(path, iteration + 1, average)
    return average


def load_spread(path: Path, shape: DreamShape) -> Spread:
    """What `train` left."""
    return trained(Spread(shape), path)
