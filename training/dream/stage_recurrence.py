"""Stage `recurrence`: recurrent tokens learn to go on under keys and noise as the simulated world does.

Two heads, thrown away afterwards, tie them to the simulator's private labels: one writes the tokens a chain starts
from, one reads labels off every frame's tokens. The noise is the dice that made the world (dice.py), so chains stay
true for as long as they run. No pictures are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ...models.dream.recurrent import Recurrent
from ...models.dream.shape import DreamShape
from ..drive import chains
from ..drive.chains import Phase
from ..drive.simulator.driver import new_driver
from ..drive.simulator.world import advance, first_world
from .data import lead_in, private
from .dice import DICE, new_luck

LABELS = 99


PHASES = (
    Phase(3000, (1,), 512, 3e-3, 0.02),
    Phase(1200, (6,), 128, 6e-4, 0.02),
    Phase(1000, (8, 16, 40), 96, 7e-4, 0.05),
    Phase(300, (40, 120), 48, 3e-4, 0.05),
)


class Recurrence(nn.Module):
    """The network that is kept and the heads that are thrown away."""

    def __init__(self, shape: DreamShape) -> None:
        super().__init__()
        self.shape = shape
        self.recurrent = Recurrent(shape)
        self.writes, self.reads = nn.Linear(LABELS, shape.state), nn.Linear(shape.state, LABELS)

    def track(self, labels_BTM: Tensor, controls_BTK: Tensor, noise_BTZ: Tensor, again_BT: Tensor) -> Tensor:
        """Tokens [B, T, R] of recorded drives, written anew where `again` says so."""
        written: Tensor = self.writes(labels_BTM)
        made: list[Tensor] = []
        for t in range(labels_BTM.shape[1]):
            state = written[:, t]
            if made:
                on = self.recurrent(made[-1], controls_BTK[:, t], noise_BTZ[:, t])
                state = torch.where(again_BT[:, t, None], state, on)
            made.append(state)
        return torch.stack(made, 1)


@dataclass(frozen=True, slots=True)
class Drives:
    """Private labels, keys and dice [S, T, ..] of drives that were never drawn."""

    labels: NDArray[np.float16]
    controls: NDArray[np.int8]
    dice: NDArray[np.float32]


def drives(seed: int, sessions: int, frames: int) -> Drives:
    rng = np.random.default_rng([seed, 5])
    world, luck = first_world(rng, sessions), new_luck(rng, sessions)
    lead_in(world, luck, rng)
    driver, kept = new_driver(rng, sessions), []
    for _ in range(frames):
        controls, (dice, innovations) = driver.controls(world), luck.draw()
        advance(world, controls, innovations)
        kept.append((private(world, luck).astype(np.float16), controls, dice))
    return Drives(*(np.stack(parts, 1) for parts in zip(*kept, strict=True)))


def train(
    data: Drives,
    shape: DreamShape,
    path: Path,
    phases: tuple[Phase, ...],
    seed: int,
    report: Callable[[int, float], None],
) -> Recurrence:
    """See `chains.train`."""
    torch.manual_seed(seed)
    model = Recurrence(shape)
    return chains.train(model, partial(chain_loss, model, data), path, phases, seed, report)


def chain_loss(model: Recurrence, data: Drives, length: int, phase: Phase, rng: np.random.Generator) -> Tensor:
    """Mean error of what is read along a chain of `length` steps, and at its start."""
    sessions, times = data.labels.shape[:2]
    s, t = rng.integers(sessions, size=phase.batch), rng.integers(times - length, size=phase.batch)
    at = t[:, None] + np.arange(length + 1)
    labels = torch.from_numpy(data.labels[s[:, None], at]).float()
    controls = torch.from_numpy(data.controls[s[:, None], at]).float()
    dice = torch.from_numpy(data.dice[s[:, None], at])
    noise = torch.cat([dice, torch.randn(*dice.shape[:2], model.shape.noise - DICE)], -1)
    state = model.writes(labels[:, 0])
    state = state + phase.noise * torch.randn_like(state) * torch.rand(len(state), 1)
    read = [model.reads(state)]
    for step in range(1, length + 1):
        state = model.recurrent(state, controls[:, step], noise[:, step])
        read.append(model.reads(state))
    return F.smooth_l1_loss(torch.stack(read, 1), labels, beta=1.0)  # rare events miss by far: they must weigh


def load_recurrence(path: Path, shape: DreamShape) -> Recurrence:
    """What `train` left."""
    return chains.trained(Recurrence(shape), path).eval().requires_grad_(False)
