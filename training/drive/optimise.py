"""How every stage optimises: Muon for hidden matrices, AdamW for the rest, a learning-rate curve, an average.

Budgets are iterations, so a stopped or slow machine changes nothing; a checkpoint resumes exactly.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from .muon import Muon

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Rates:
    muon: float
    adam: float
    warm_up: int  # iterations of linear rise
    flat: float  # share of the budget before the linear fall
    floor: float = 0.02


@dataclass(slots=True)
class Optimiser:
    """Both optimisers behind one step; `share` of the budget done sets the rate."""

    muon: Muon
    adam: torch.optim.AdamW
    rates: Rates
    others: list[nn.Parameter]

    def step(self, iteration: int, total: int) -> None:
        """Clip, step and clear the gradients."""
        done = iteration / total
        fall = 1.0 if done < self.rates.flat else (1 - done) / (1 - self.rates.flat)
        scale = min(1.0, (iteration + 1) / self.rates.warm_up) * max(self.rates.floor, fall)
        self.muon.rate = self.rates.muon * scale
        for group in self.adam.param_groups:
            group["lr"] = self.rates.adam * scale
        torch.nn.utils.clip_grad_norm_(self.others, 1.0)
        self.muon.step()
        self.adam.step()
        self.adam.zero_grad()


def optimiser_for(hidden: Sequence[Tensor], model: nn.Module, rates: Rates, betas: tuple[float, float]) -> Optimiser:
    """`hidden` are the 2-d matrices Muon trains; every other parameter of `model` goes to AdamW."""
    known = {id(p) for p in hidden}
    others = [p for p in model.parameters() if id(p) not in known and p.requires_grad]
    return Optimiser(
        Muon(hidden, rates.muon),
        torch.optim.AdamW(others, lr=rates.adam, betas=betas, weight_decay=1e-3),
        rates,
        others,
    )


def step_once(
    optimiser: torch.optim.AdamW, loss: Tensor, rate: float, done: float, iteration: int, clip: float = 0.0
) -> None:
    """One step of AdamW alone at `rate`, which rises over 50 iterations and falls to a fiftieth when all is `done` (1).

    `clip`: largest norm of the gradient, 0 = any.
    """
    for group in optimiser.param_groups:
        group["lr"] = rate * min(1, (iteration + 1) / 50) * max(0.02, 1 - done)
    optimiser.zero_grad()
    torch.autograd.backward(loss)
    if clip:
        torch.nn.utils.clip_grad_norm_([p for group in optimiser.param_groups for p in group["params"]], clip)
    optimiser.step()


def averaged_copy(model: M) -> M:
    return copy.deepcopy(model).requires_grad_(False)


@torch.no_grad()
def update_average(average: nn.Module, model: nn.Module, keep: float) -> None:
    """average = keep * average + (1 - keep) * model, buffers copied."""
    for a, b in zip(average.parameters(), model.parameters(), strict=True):
        a.lerp_(b, 1 - keep)
    for kept, newest in zip(average.buffers(), model.buffers(), strict=True):
        kept.copy_(newest)


@dataclass(slots=True)
class Checkpoint:
    iteration: int
    model: dict[str, Tensor]
    average: dict[str, Tensor]
    momenta: list[Tensor]
    adam: dict[str, object]


def save_checkpoint(path: Path, iteration: int, model: nn.Module, average: nn.Module, optimiser: Optimiser) -> None:
    """Write beside and rename, so that a killed process leaves the previous one whole."""
    beside = path.with_suffix(".part")
    whole = (iteration, model.state_dict(), average.state_dict(), optimiser.muon.buffers, optimiser.adam.state_dict())
    torch.save(whole, beside)
    os.replace(beside, path)


def load_checkpoint(path: Path) -> Checkpoint:
    return Checkpoint(*torch.load(path, weights_only=True))


def halve_checkpoint(path: Path, to: Path) -> None:
    """The same state in half precision, for keeping: training that goes on from it rounds once."""
    saved = load_checkpoint(path)
    model, average = ({name: tensor.half() for name, tensor in s.items()} for s in (saved.model, saved.average))
    to.parent.mkdir(parents=True, exist_ok=True)
    torch.save((saved.iteration, model, average, [m.half() for m in saved.momenta], saved.adam), to)


def resume(path: Path, model: nn.Module, average: nn.Module, optimiser: Optimiser) -> int:
    """Load model, average and optimisers when the file exists; the iteration to go on with."""
    if not path.exists():
        return 0
    saved = load_checkpoint(path)
    model.load_state_dict(saved.model)
    average.load_state_dict(saved.average)
    optimiser.muon.buffers = [momentum.float() for momentum in saved.momenta]
    optimiser.adam.load_state_dict(saved.adam)
    return saved.iteration
