"""Stage 2: the recall network learns how keys and innovations move a frame's memory on.

First single frames, then chains of its own predictions, longer and longer: the world is a deterministic function of
keys and innovations, so the recorded memory stays a valid target for a whole chain. Needs no pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ...models.drive.blocks import DriveShape
from ...models.drive.memory import CHANNELS, PICTURE_TOKENS
from ...models.drive.recall import Recall
from . import chains
from .chains import Phase
from .windows import Latents

MARGIN = 0.02  # how far beyond the recorded range a value may lie


PHASES = (
    Phase(2500, (1,), 512, 2e-3, 0.02),
    Phase(1250, (6,), 128, 5e-4, 0.02),
    Phase(1250, (16,), 64, 3e-4, 0.02),
    Phase(900, (8, 24, 40), 96, 7.5e-4, 0.05),
)


def train(
    data: Latents, path: Path, phases: tuple[Phase, ...], seed: int, report: Callable[[int, float], None]
) -> Recall:
    """See `chains.train`."""
    torch.manual_seed(seed)
    memory_ETC = data.latents_ETNC[:, :, PICTURE_TOKENS:].float().flatten(2)
    recall = Recall(data.controls_ETK.shape[2], data.innovations_ETI.shape[2])
    recall.low.copy_(memory_ETC.amin((0, 1)) - MARGIN)
    recall.high.copy_(memory_ETC.amax((0, 1)) + MARGIN)
    return chains.train(recall, partial(chain_loss, recall, data, memory_ETC), path, phases, seed, report)


def load_recall(path: Path, shape: DriveShape) -> Recall:
    """What `train` left."""
    return chains.trained(Recall(shape.controls, shape.innovations), path)


def chain_loss(
    recall: Recall, data: Latents, memory_ETC: Tensor, length: int, phase: Phase, rng: np.random.Generator
) -> Tensor:
    """Mean error of a chain of `length` predictions from noised recorded memory."""
    episodes, times = memory_ETC.shape[:2]
    e = torch.from_numpy(rng.integers(episodes, size=phase.batch))
    t = torch.from_numpy(rng.integers(times - length, size=phase.batch))
    start = memory_ETC[e, t]
    memory = (start + phase.noise * torch.randn_like(start) * torch.rand(phase.batch, 1)).reshape(
        phase.batch, -1, CHANNELS
    )
    losses = []
    for step in range(1, length + 1):
        memory = recall(memory, data.controls_ETK[e, t + step], data.innovations_ETI[e, t + step])
        losses.append(F.smooth_l1_loss(memory.flatten(1), memory_ETC[e, t + step], beta=0.2))
    return torch.stack(losses).mean()
