"""Stage 3: the transformer learns to paint a picture from its memory alone, single frames in any order.

The memory and the look determine the picture, so this is a plain regression, and by far the fastest way to sharp
pictures: no windows, no contexts. What it reaches here is where a dream that has lost its past comes back to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ...models.drive.blocks import DriveShape
from ...models.drive.memory import PICTURE_TOKENS
from ...models.drive.recall import Recall
from ...models.drive.transformer import CondB, DriveTransformer
from ...models.shared.road.blocks import Spatial, Temporal
from .optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from .windows import Latents, frames_at_random

RATES = Rates(muon=0.02, adam=2e-3, warm_up=40, flat=0.3)
BETAS = (0.9, 0.97)
FRAMES = 32
MEMORY_ERROR = 0.02  # largest noise on the memory, as a dream's own has
AVERAGE = 0.99
CHECKPOINT_EVERY = 100
CHUNK = 48  # frames painted at a time


@dataclass(frozen=True, slots=True)
class Report:
    """Progress: mean error since the last report, and on held-out frames or None."""

    iteration: int
    loss: float
    held_loss: float | None


def painting_matrices(blocks: Iterable[nn.Module]) -> Iterator[Tensor]:
    """The matrices inside the blocks that paint, which Muon trains; what listens to the past waits for its stage."""
    for block in blocks:
        if isinstance(block, Spatial):
            yield from (block.qkv.weight, block.out.weight, block.up.weight, block.down.weight)
        elif isinstance(block, Temporal):
            yield from (block.out.weight, block.own.weight)


def train(
    data: Latents,
    held: Latents,
    recall: Recall,
    shape: DriveShape,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[Report], None],
) -> DriveTransformer:
    """Train for `total` iterations (resuming from `path`) and return the averaged model; recall stays as it is."""
    torch.manual_seed(seed)
    model = DriveTransformer(shape)
    model.recall.load_state_dict(recall.state_dict())
    model.recall.requires_grad_(False)
    average, optimiser = averaged_copy(model), optimiser_for(list(painting_matrices(model.blocks)), model, RATES, BETAS)
    first, losses = resume(path, model, average, optimiser), list[float]()
    rng, g = np.random.default_rng([seed, first]), torch.Generator().manual_seed(seed * 1_000_003 + first)
    for iteration in range(first, total):
        truth_BNC, cond = frames_at_random(data, FRAMES, rng)
        loss = painting_error(model, truth_BNC, cond, MEMORY_ERROR, g)
        torch.autograd.backward(loss)
        optimiser.step(iteration, total)
        update_average(average, model, min(AVERAGE, iteration / (iteration + 20)))
        losses.append(float(loss.detach()))
        if (iteration + 1) % CHECKPOINT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, model, average, optimiser)
            checked = (iteration + 1) % (4 * CHECKPOINT_EVERY) == 0
            report(Report(iteration + 1, float(np.mean(losses)), held_loss(average, held) if checked else None))
            losses.clear()
    return average


def painting_error(
    model: DriveTransformer, truth_BNC: Tensor, cond: CondB, memory_error: float, g: torch.Generator
) -> Tensor:
    """Mean squared error of pictures painted from memory that is off by up to `memory_error`."""
    picture, memory = truth_BNC[:, :PICTURE_TOKENS], truth_BNC[:, PICTURE_TOKENS:]
    off = memory_error * torch.rand(len(memory), 1, 1, generator=g) * torch.randn(memory.shape, generator=g)
    return (model.paint(memory + off, cond) - picture).square().mean()


@torch.inference_mode()
def paint_all(model: DriveTransformer, data: Latents, path: Path, progress: Callable[[int], None]) -> None:
    """Write what the model paints of every frame's memory, float16 [E, T, 40, 32]."""
    episodes, times = data.controls_ETK.shape[:2]
    shape = (episodes, times, PICTURE_TOKENS, model.shape.channels)
    out = np.lib.format.open_memmap(path.with_suffix(".part.npy"), "w+", np.float16, shape)
    for e in range(episodes):
        for t in range(0, times, CHUNK):
            part = slice(t, t + CHUNK)
            cond = CondB(data.controls_ETK[e, part], data.look_ETL[e, part], data.innovations_ETI[e, part])
            out[e, part] = model.paint(data.latents_ETNC[e, part, PICTURE_TOKENS:].float(), cond).half().numpy()
        progress(times)
    out.flush()
    path.with_suffix(".part.npy").rename(path)


@torch.no_grad()
def held_loss(model: DriveTransformer, held: Latents) -> float:
    """The error on 240 held-out frames with exact memory."""
    rng, g = np.random.default_rng(1), torch.Generator()
    parts = [painting_error(model, *frames_at_random(held, 40, rng), 0.0, g) for _ in range(6)]
    return float(torch.stack(parts).mean())
