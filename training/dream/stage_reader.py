"""Stage `reader`: to find in three pictures the recurrent tokens of the world they show.

What it should find is what the recurrence's writing head, thrown away afterwards, writes of the private labels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ...models.dream.recurrent import Reader
from ...models.dream.shape import DreamShape
from ...models.dream.transformer import PICTURE
from ..drive.chains import resume_network, save_network, trained
from ..drive.optimise import averaged_copy, step_once, update_average
from .data import Shard, labels_of
from .stage_recurrence import Recurrence

RATE, BATCH, NOISE, REPORT_EVERY = 1.5e-3, 256, 0.15, 200


def train(
    shards: list[Shard],
    held: list[Shard],
    recurrence: Recurrence,
    shape: DreamShape,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[int, float, float], None],
) -> Reader:
    """`report` gets the iteration and errors of tokens, on these shards and on held-out ones. Resumes from `path`."""
    torch.manual_seed(seed)
    reader = Reader(shape, PICTURE)
    first = resume_network(path, reader)
    average, rng = averaged_copy(reader), np.random.default_rng([seed, 12, first])
    optimiser = torch.optim.AdamW(reader.parameters(), lr=RATE, weight_decay=1e-2, betas=(0.9, 0.98))
    losses, truth = list[float](), batch(held, recurrence, 512, np.random.default_rng(1))
    for iteration in range(first, total):
        history, look, wanted = batch(shards, recurrence, BATCH, rng)
        noise = NOISE * torch.rand(BATCH, 1, 1, 1) * torch.randn_like(history)
        loss = F.smooth_l1_loss(reader(history + noise, look), wanted, beta=0.5)
        step_once(optimiser, loss, RATE, iteration / total, iteration)
        update_average(average, reader, min(0.99, (iteration - first) / (iteration - first + 20)))
        losses.append(float(loss.detach()))
        if (iteration + 1) % REPORT_EVERY == 0 or iteration + 1 == total:
            found = average(*truth[:2])
            report(iteration + 1, float(np.mean(losses)), float(F.smooth_l1_loss(found, truth[2], beta=0.5)))
            losses.clear()
            save_network(path, iteration + 1, average)
    return average


def batch(
    shards: list[Shard], recurrence: Recurrence, rows: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Three pictures [B, 3, P, C], newest first, the newest's look, and its tokens [B, R]."""
    numbers = rng.integers(len(shards), size=rows)
    episodes, times = shards[0].dice.shape[:2]
    e, t = rng.integers(episodes, size=rows), rng.integers(2, times, size=rows)
    places = list(zip(numbers, e, t, strict=True))
    history = np.stack([shards[n].latents[i, at - 2 : at + 1][::-1] for n, i, at in places])
    look = np.stack([shards[n].look[i, at] for n, i, at in places])
    labels = np.stack([labels_of(shards[n], i, at) for n, i, at in places])
    wanted = recurrence.writes(torch.from_numpy(labels))
    return torch.from_numpy(history.astype(np.float32)), torch.from_numpy(look), wanted


def load_reader(path: Path, shape: DreamShape) -> Reader:
    """What `train` left."""
    return trained(Reader(shape, PICTURE), path)
