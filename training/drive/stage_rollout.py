"""Stage 4: the transformer learns to go on from its own frames.

Sessions start from a few recorded frames and dream on under the recorded keys, looks and innovations. Because
those determine the world, the simulator's frames stay valid targets for long dreams; the dreams are the
contexts. Half of the rows keep recorded, damaged contexts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...models.drive.memory import PICTURE_TOKENS
from ...models.drive.transformer import DriveTransformer
from ...models.shared.road.blocks import Spatial, Temporal
from .dream import ONE_STEP, TWO_STEPS, begin
from .optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from .windows import Latents, Window, joined, sample, sample_switches, target_sigma, with_damage, with_noise

RATES = Rates(muon=0.008, adam=1e-3, warm_up=20, flat=0.25)
BETAS = (0.9, 0.97)
TARGETS = 12
FRAMES = TARGETS + 2
SESSIONS, DREAMING = 8, 4  # rows of a batch, and how many of them dream; the others keep recorded contexts
SWITCHING = 2  # rows of the dreaming ones in which the look changes for certain
GIVEN = 4  # recorded frames a dream starts from, at least
CONTEXT_NOISE = (0.3,) * 4 + (0.5,) * 2 + (1.3,) * 2  # largest noise of each row, dreaming ones first
DAMAGED = 0.4
ONES = 0.9
TWO_STEP_SHARE = 0.1
SOFT = 1e-3  # keeps the power smooth at zero
TOKEN_WEIGHT = torch.ones(PICTURE_TOKENS)
TOKEN_WEIGHT[32:35] = 3.0  # the speed bar: small, and the one thing that shows how fast the car goes
MEMORY_ERROR = 0.02  # of the memory a picture is painted from, in half of the windows
CHECKPOINT_EVERY = 20


@dataclass(frozen=True, slots=True)
class Ramp:
    """Dreamed frames grow from `first` to `last` over `share` of the budget."""

    first: int
    last: int
    share: float

    def at(self, iteration: int, total: int) -> int:
        done = min(1.0, iteration / (total * self.share))
        return round(self.first + (self.last - self.first) * done)


@dataclass(frozen=True, slots=True)
class Report:
    """Mean losses since the last report with own and recorded contexts, and how far dreams end from the truth."""

    iteration: int
    own: float
    recorded: float
    frames: int
    end_picture: float
    end_memory: float


def train(
    data: Latents,
    start: DriveTransformer,
    path: Path,
    total: int,
    seed: int,
    ramp: Ramp,
    report: Callable[[Report], None],
) -> DriveTransformer:
    """Train for `total` dreams (resuming from `path`) and return the averaged model."""
    torch.manual_seed(seed)
    model = copy.deepcopy(start).requires_grad_(True)
    model.recall.requires_grad_(False)
    average, optimiser = averaged_copy(model), optimiser_for(list(hidden_matrices(model)), model, RATES, BETAS)
    first = resume(path, model, average, optimiser)
    rng, g = np.random.default_rng([seed, 7, first]), torch.Generator().manual_seed(seed * 1_000_003 + first)
    noise = torch.tensor(CONTEXT_NOISE)
    seen: list[Tensor] = []
    for iteration in range(first, total):
        length = ramp.at(iteration, total)
        frames = max(GIVEN + length, FRAMES)
        given = frames - length
        switches = sample_switches(data, SWITCHING, frames, given, rng)
        truth = joined(switches, sample(data, SESSIONS - SWITCHING, frames, rng))
        sigmas = TWO_STEPS if rng.random() < TWO_STEP_SHARE else ONE_STEP
        own_rows = dreamed(model, truth.rows(0, DREAMING), given, sigmas, iteration)
        missed_N = (own_rows - truth.latents_BFNC[:DREAMING])[:, -1].square().mean((0, 2))
        context = torch.cat([own_rows, with_damage(truth.latents_BFNC[DREAMING:], DAMAGED, g)])
        place = int(rng.integers(frames - FRAMES + 1))
        sigma = target_sigma(SESSIONS, TARGETS, ONES, g)
        loss = prediction_loss(model, context[:, place : place + FRAMES], truth.part(place, FRAMES), sigma, noise, g)
        torch.autograd.backward(loss.mean())
        optimiser.step(iteration, total)
        update_average(average, model, 0.99)
        own, recorded = loss[:DREAMING].detach().mean(), loss[DREAMING:].detach().mean()
        ends = (missed_N[:PICTURE_TOKENS].mean(), missed_N[PICTURE_TOKENS:].mean())
        seen.append(torch.stack([own, recorded, *ends]))
        if (iteration + 1) % CHECKPOINT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, model, average, optimiser)
            own_mean, recorded_mean, end_picture, end_memory = torch.stack(seen).mean(0).tolist()
            report(Report(iteration + 1, own_mean, recorded_mean, length, end_picture, end_memory))
            seen.clear()
    return average


def hidden_matrices(model: DriveTransformer) -> Iterator[Tensor]:
    """The matrices inside the blocks, which Muon trains."""
    for block in (model.context, *model.blocks):
        if isinstance(block, Spatial):
            yield from (block.qkv.weight, block.out.weight, block.up.weight, block.down.weight)
        elif isinstance(block, Temporal):
            yield from (block.query.weight, block.out.weight, block.kept.weight, block.own.weight)


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


@torch.no_grad()
def dreamed(model: DriveTransformer, truth: Window, given: int, sigmas: tuple[float, ...], seed: int) -> Tensor:
    """The window's first `given` frames, then the model's own [B, F, N, C]."""
    latents = truth.latents_BFNC
    dream = begin(model, latents[:, 0], truth.cond_at(0), sigmas, seed)
    for frame in range(1, given):
        dream.observe(latents[:, frame], truth.cond_at(frame))
    own = [dream.next(truth.cond_at(frame)) for frame in range(given, latents.shape[1])]
    return torch.cat([latents[:, :given], torch.stack(own, 1)], 1)
