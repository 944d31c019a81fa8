"""Stage `lasting`: recurrent tokens learn to last, from wherever they have got to by themselves.

Many worlds go on from the network's own tokens for thousands of frames. What each should become is what the simulator
makes of the nearest world that could be (settle.py) under the same keys and dice: a right answer that lies close,
however long ago the two parted. A loss against the road as recorded has no such answer after a few hundred frames and
teaches the mean of all roads: phases that fade, half objects.

A person holds a key for minutes, or none: cars that stand for hundreds of frames, which the recorded drives lack, were
where values ran away. So drivers differ in how long they hold what they press.

The heads stay as they are, so tokens keep their meaning for all that has learned to read them.
Source of the idea: Ross et al. 1011.0686 (an expert labels the states its learner gets into).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..drive.chains import resume_network, save_network
from ..drive.clips import Keys
from ..drive.optimise import averaged_copy, step_once, update_average
from ..drive.simulator.driver import Driver, new_driver
from ..drive.simulator.world import World, advance
from .data import private
from .dice import DICE
from .settle import settled
from .stage_recurrence import Drives, Recurrence

RATE, WORLDS, RECORDED = 6e-4, 256, 128
HOLDS = (1, 4, 8, 24)  # frames that keys are held, group by group
STEPS = 2  # frames a gradient goes through
FRESH = 1 / 2500  # chance a frame that a world starts anew
START_NOISE, TOKEN_SHARE, REPORT_EVERY = 0.05, 0.5, 200


@dataclass(slots=True)
class Group:
    """Worlds in lock-step: their own tokens [B, R] and who drives them, with keys held for `hold` frames."""

    state: Tensor
    driver: Driver
    rng: np.random.Generator
    hold: int
    pressed: Keys
    frame: int = 0

    def keys(self, world: World) -> Keys:
        """Those of the next frame."""
        if self.frame % self.hold == 0:
            self.pressed = self.driver.controls(world)
        self.frame += 1
        return self.pressed


def train(
    model: Recurrence,
    data: Drives,
    path: Path,
    total: int,
    seed: int,
    report: Callable[[int, float, float], None],
) -> Recurrence:
    """`report` gets the iteration, the error of labels on own worlds and on recorded ones. Resumes from `path`."""
    first = resume_network(path, model)
    model.requires_grad_(False)
    model.recurrent.requires_grad_(True)
    average, rng = averaged_copy(model), np.random.default_rng([seed, 17, first])
    optimiser = torch.optim.AdamW(model.recurrent.parameters(), lr=RATE, weight_decay=1e-4, betas=(0.9, 0.98))
    groups, errors = [_group(model, data, rng, hold) for hold in HOLDS], list[tuple[float, float]]()
    for iteration in range(first, total):
        own = _own_error(model, groups[iteration % len(groups)], data)
        recorded = _recorded_error(model, data, rng)
        step_once(optimiser, own + recorded, RATE, iteration / total, iteration - first, clip=0.5)
        update_average(average, model, 0.998)
        errors.append((float(own.detach()), float(recorded.detach())))
        if (iteration + 1) % REPORT_EVERY == 0 or iteration + 1 == total:
            save_network(path, iteration + 1, average)
            report(iteration + 1, *np.mean(errors, 0).tolist())
            errors.clear()
    return average


def _group(model: Recurrence, data: Drives, rng: np.random.Generator, hold: int) -> Group:
    none = np.zeros((WORLDS, model.shape.controls), np.int8)
    return Group(_anew(model, data, WORLDS, rng), new_driver(rng, WORLDS), rng, hold, none)


@torch.no_grad()
def _anew(model: Recurrence, data: Drives, count: int, rng: np.random.Generator) -> Tensor:
    """Tokens of recorded worlds, a little off."""
    sessions, times = data.labels.shape[:2]
    s, t = rng.integers(sessions, size=count), rng.integers(times, size=count)
    state: Tensor = model.writes(torch.from_numpy(data.labels[s, t].astype(np.float32)))
    return state + START_NOISE * torch.rand(count, 1) * torch.randn_like(state)


def _own_error(model: Recurrence, group: Group, data: Drives) -> Tensor:
    """The group goes on by STEPS frames; what it should have become is told frame by frame."""
    count, rng, state, missed = len(group.state), group.rng, group.state, list[Tensor]()
    for _ in range(STEPS):
        world, luck = settled(model.reads(state.detach()).numpy(), rng)
        keys, dice = group.keys(world), rng.standard_normal((count, model.shape.noise)).astype(np.float32)
        advance(world, keys, luck.meant(dice[:, :DICE]))
        state = model.recurrent(state, torch.from_numpy(keys).float(), torch.from_numpy(dice))
        missed.append(_error(model, state, torch.from_numpy(private(world, luck))))
    fresh = torch.from_numpy(rng.random(count) < FRESH * STEPS)
    group.state = torch.where(fresh[:, None], _anew(model, data, count, rng), state.detach())
    return torch.stack(missed).mean()


def _recorded_error(model: Recurrence, data: Drives, rng: np.random.Generator) -> Tensor:
    sessions, times = data.labels.shape[:2]
    s, t = rng.integers(sessions, size=RECORDED), rng.integers(times - STEPS, size=RECORDED)
    state = model.writes(torch.from_numpy(data.labels[s, t].astype(np.float32)))
    state = state + START_NOISE * torch.rand(RECORDED, 1) * torch.randn_like(state)
    missed = []
    for step in range(1, STEPS + 1):
        free = rng.standard_normal((RECORDED, model.shape.noise - DICE)).astype(np.float32)
        dice = np.concatenate([data.dice[s, t + step], free], 1)
        keys = torch.from_numpy(data.controls[s, t + step]).float()
        state = model.recurrent(state, keys, torch.from_numpy(dice))
        missed.append(_error(model, state, torch.from_numpy(data.labels[s, t + step].astype(np.float32))))
    return torch.stack(missed).mean()


def _error(model: Recurrence, state: Tensor, labels: Tensor) -> Tensor:
    """Of what is read, and of the tokens themselves, so that nothing grows where no label reads."""
    read = F.smooth_l1_loss(model.reads(state), labels, beta=1.0)
    off: Tensor = TOKEN_SHARE * (state - model.writes(labels)).square().mean()
    return read + off
