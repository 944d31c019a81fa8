"""Stage 2: the recall network learns how keys and innovations move a frame's memory on.

First single frames, then chains of its own predictions, longer and longer: the world is a deterministic function of
keys and innovations, so the recorded memory stays a valid target for a whole chain. Needs no pictures.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ...models.drive.blocks import DriveShape
from ...models.drive.memory import CHANNELS, PICTURE_TOKENS
from ...models.drive.recall import Recall
from .optimise import averaged_copy, update_average
from .windows import Latents

MARGIN = 0.02  # how far beyond the recorded range a value may lie
REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Phase:
    """`iterations` of chains of these lengths in turn; the rate falls to nothing, the start is noised a little."""

    iterations: int
    lengths: tuple[int, ...]
    batch: int
    rate: float
    noise: float


PHASES = (
    Phase(2500, (1,), 512, 2e-3, 0.02),
    Phase(1250, (6,), 128, 5e-4, 0.02),
    Phase(1250, (16,), 64, 3e-4, 0.02),
    Phase(900, (8, 24, 40), 96, 7.5e-4, 0.05),
)
BRIEF = (Phase(4, (1,), 16, 2e-3, 0.02), Phase(2, (2, 4), 8, 5e-4, 0.02))  # for tests


@dataclass(frozen=True, slots=True)
class Report:
    """Iterations done in all phases, and the mean chain loss since the last report."""

    iteration: int
    loss: float


def train(data: Latents, path: Path, phases: tuple[Phase, ...], seed: int, report: Callable[[Report], None]) -> Recall:
    """Train through the phases (resuming after the last whole one in `path`) and return the averaged network."""
    torch.manual_seed(seed)
    memory_ETC = data.latents_ETNC[:, :, PICTURE_TOKENS:].float().flatten(2)
    recall = Recall(data.controls_ETK.shape[2], data.innovations_ETI.shape[2])
    recall.low.copy_(memory_ETC.amin((0, 1)) - MARGIN)
    recall.high.copy_(memory_ETC.amax((0, 1)) + MARGIN)
    finished = 0
    if path.exists():
        finished, state = torch.load(path, weights_only=True)
        recall.load_state_dict(state)
    average, before = averaged_copy(recall), sum(phase.iterations for phase in phases[:finished])
    for number in range(finished, len(phases)):
        _phase(recall, average, data, memory_ETC, phases[number], (seed, number), before, report)
        before += phases[number].iterations
        recall.load_state_dict(average.state_dict())
        beside = path.with_suffix(".part")
        torch.save((number + 1, average.state_dict()), beside)
        os.replace(beside, path)
    return average


def _phase(
    recall: Recall,
    average: Recall,
    data: Latents,
    memory_ETC: Tensor,
    phase: Phase,
    seeds: tuple[int, int],
    before: int,
    report: Callable[[Report], None],
) -> None:
    rng, losses = np.random.default_rng(seeds), list[float]()
    optimiser = torch.optim.AdamW(recall.parameters(), lr=phase.rate, weight_decay=1e-4, betas=(0.9, 0.98))
    for iteration in range(phase.iterations):
        for group in optimiser.param_groups:
            group["lr"] = phase.rate * min(1, (iteration + 1) / 50) * max(0.02, 1 - iteration / phase.iterations)
        length = phase.lengths[iteration % len(phase.lengths)]
        loss = chain_loss(recall, data, memory_ETC, length, phase, rng)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(recall.parameters(), 0.5)
        optimiser.step()
        update_average(average, recall, 0.98)
        losses.append(float(loss.detach()))
        if (iteration + 1) % REPORT_EVERY == 0 or iteration + 1 == phase.iterations:
            report(Report(before + iteration + 1, float(np.mean(losses))))
            losses.clear()


def load_recall(path: Path, shape: DriveShape) -> Recall:
    """What `train` left."""
    recall = Recall(shape.controls, shape.innovations)
    recall.load_state_dict(torch.load(path, weights_only=True)[1])
    return recall


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
