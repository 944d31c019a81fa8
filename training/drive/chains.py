"""How what moves a world's state on is trained: on chains of its own predictions, longer and longer, phase by phase."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from .optimise import averaged_copy, step_once, update_average

REPORT_EVERY = 100
Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Phase:
    """`iterations` of chains of these lengths in turn; the rate falls to nothing, the start is noised a little."""

    iterations: int
    lengths: tuple[int, ...]
    batch: int
    rate: float
    noise: float


BRIEF = (Phase(4, (1,), 16, 2e-3, 0.02), Phase(2, (2, 4), 8, 5e-4, 0.02))  # for tests

ChainLoss = Callable[[int, Phase, np.random.Generator], Tensor]
"""Mean error of the network's chains of so many steps."""


def train(
    network: Network,
    loss_of: ChainLoss,
    path: Path,
    phases: tuple[Phase, ...],
    seed: int,
    report: Callable[[int, float], None],
) -> Network:
    """Train through the phases (resuming after the last whole one in `path`) and return the averaged network.

    `report` gets the iterations done in all phases and the mean loss since the last report.
    """
    finished = resume_network(path, network)
    average, before = averaged_copy(network), sum(phase.iterations for phase in phases[:finished])
    for number in range(finished, len(phases)):
        _phase(network, average, loss_of, phases[number], (seed, number), before, report)
        before += phases[number].iterations
        network.load_state_dict(average.state_dict())
        save_network(path, number + 1, average)
    return average


def save_network(path: Path, done: int, network: nn.Module) -> None:
    """Write a network and how far it has come; a process killed meanwhile leaves the last one whole."""
    beside = path.with_suffix(".part")
    torch.save((done, network.state_dict()), beside)
    os.replace(beside, path)


def resume_network(path: Path, network: nn.Module) -> int:
    """Load what `save_network` left, if anything, and say how far it had come."""
    if not path.exists():
        return 0
    done, state = torch.load(path, weights_only=True)
    network.load_state_dict(state)
    return int(done)


def trained(network: Network, path: Path) -> Network:
    """The network with what `train` left."""
    network.load_state_dict(torch.load(path, weights_only=True)[1])
    return network


def _phase(
    network: nn.Module,
    average: nn.Module,
    loss_of: ChainLoss,
    phase: Phase,
    seeds: tuple[int, int],
    before: int,
    report: Callable[[int, float], None],
) -> None:
    rng, losses = np.random.default_rng(seeds), list[float]()
    optimiser = torch.optim.AdamW(network.parameters(), lr=phase.rate, weight_decay=1e-4, betas=(0.9, 0.98))
    for iteration in range(phase.iterations):
        loss = loss_of(phase.lengths[iteration % len(phase.lengths)], phase, rng)
        step_once(optimiser, loss, phase.rate, iteration / phase.iterations, iteration, clip=0.5)
        update_average(average, network, 0.98)
        losses.append(float(loss.detach()))
        if (iteration + 1) % REPORT_EVERY == 0 or iteration + 1 == phase.iterations:
            report(before + iteration + 1, float(np.mean(losses)))
            losses.clear()
