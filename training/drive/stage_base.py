"""Stage 3: the transformer learns the next frame from recorded contexts, noised and damaged.

A model trained by this stage alone drifts away within a hundred frames; stage_rollout.py cures that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...models.drive.blocks import DriveShape, Spatial, Temporal
from ...models.drive.memory import PICTURE_TOKENS
from ...models.drive.recall import Recall
from ...models.drive.transformer import DriveTransformer
from .optimise import Optimiser, Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from .windows import Latents, Window, sample, target_sigma, with_damage, with_noise

RATES = Rates(muon=0.02, adam=2e-3, warm_up=60, flat=0.7)
BETAS = (0.9, 0.97)
WINDOWS, TARGETS = 8, 12
FRAMES = TARGETS + 2
CONTEXT_NOISE = (0.5,) * 4 + (1.3,) * 4  # largest noise of each row: some pictures can be had from memory alone
DAMAGED = 0.25
SOFT = 1e-3  # keeps the power smooth at zero
TOKEN_WEIGHT = torch.ones(PICTURE_TOKENS)
TOKEN_WEIGHT[32:35] = 6.0  # the speed bar: small, and the one thing that shows how fast the car goes
MEMORY_ERROR = 0.03  # of the memory a picture is painted from, in half of the windows
ONES = 0.75  # share of targets at noise level 1
CHECKPOINT_EVERY = 60


@dataclass(frozen=True, slots=True)
class Report:
    """Progress: mean loss at noise level 1 since the last report, and on held-out windows or None."""

    iteration: int
    loss: float
    held_loss: float | None


def hidden_matrices(model: DriveTransformer) -> Iterator[Tensor]:
    """The matrices inside the blocks, which Muon trains."""
    for block in (model.context, *model.blocks):
        if isinstance(block, Spatial):
            yield from (block.qkv.weight, block.out.weight, block.up.weight, block.down.weight)
        elif isinstance(block, Temporal):
            yield from (block.query.weight, block.out.weight, block.kept.weight, block.own.weight)


def optimiser_of(model: DriveTransformer, rates: Rates) -> Optimiser:
    return optimiser_for(list(hidden_matrices(model)), model, rates, BETAS)


def prediction_loss(
    model: DriveTransformer,
    context_BFNC: Tensor,
    truth: Window,
    sigma_BT: Tensor,
    largest_noise_B: Tensor,
    g: torch.Generator,
) -> Tensor:
    """Error of each target frame [B, T], contexts noised up to `largest_noise_B`.

    The error of a token grows slower than the square of its miss: where a dream has gone its own way and the truth
    cannot be known any more, a far miss pulls less, and the model need not answer with a blur. The picture
    is painted from the true memory, or one slightly off.
    """
    context, context_sigma = with_noise(context_BFNC, largest_noise_B, g)
    x0 = truth.latents_BFNC[:, 2:]
    s = sigma_BT[..., None, None]
    x = (1 - s) * x0 + s * torch.randn(x0.shape, generator=g)
    memory = x0[:, :, PICTURE_TOKENS:]
    off = MEMORY_ERROR * (torch.rand(len(x0), 1, 1, 1, generator=g) < 0.5)
    x[:, :, PICTURE_TOKENS:] = memory + off * torch.randn(memory.shape, generator=g)
    sigma_BF = torch.cat([sigma_BT[:, :2], sigma_BT], 1)
    predicted = model.two_stream(context, x, context_sigma, truth.cond(sigma_BF))
    missed_BTNC = (predicted - x0)[:, :, :PICTURE_TOKENS]
    missed_BTN = (missed_BTNC.square().mean(3) + SOFT) ** 0.75
    return (missed_BTN * TOKEN_WEIGHT).mean(2)


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
    """Train all but recall for `total` iterations (resuming from `path`) and return the averaged model."""
    torch.manual_seed(seed)
    model = DriveTransformer(shape)
    model.recall.load_state_dict(recall.state_dict())
    model.recall.requires_grad_(False)
    average, optimiser = averaged_copy(model), optimiser_of(model, RATES)
    first = resume(path, model, average, optimiser)
    rng, g = np.random.default_rng([seed, first]), torch.Generator().manual_seed(seed * 1_000_003 + first)
    losses: list[float] = []
    noise = torch.tensor(CONTEXT_NOISE)
    for iteration in range(first, total):
        truth = sample(data, WINDOWS, FRAMES, rng)
        context = with_damage(truth.latents_BFNC, DAMAGED, g)
        sigma = target_sigma(WINDOWS, TARGETS, ONES, g)
        loss = prediction_loss(model, context, truth, sigma, noise, g)
        torch.autograd.backward(loss.mean())
        optimiser.step(iteration, total)
        update_average(average, model, min(0.997, iteration / (iteration + 20)))
        losses.append(float(loss[sigma == 1].detach().mean()))
        if (iteration + 1) % CHECKPOINT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, model, average, optimiser)
            checked = (iteration + 1) % (4 * CHECKPOINT_EVERY) == 0
            report(Report(iteration + 1, float(np.nanmean(losses)), held_loss(average, held) if checked else None))
            losses.clear()
    return average


@torch.no_grad()
def held_loss(model: DriveTransformer, held: Latents) -> float:
    """One-step error on 24 held-out windows with contexts as served (clean, no damage)."""
    truth = sample(held, 24, FRAMES, np.random.default_rng(1))
    g, ones = torch.Generator().manual_seed(7), torch.ones(8, TARGETS)
    parts = []
    for i in range(0, 24, 8):
        rows = truth.rows(i, i + 8)
        parts.append(prediction_loss(model, rows.latents_BFNC, rows, ones, torch.zeros(8), g).mean())
    return float(torch.stack(parts).mean())
