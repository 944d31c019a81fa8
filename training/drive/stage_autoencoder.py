"""Stage 1: the autoencoder learns to draw the simulator's pictures, objects and edges above all.

Loss: L1 weighted toward places with local contrast (objects, edges, markings) + L2 + L1 of differences.
Noise on the latents makes the decoder forgiving of the transformer's small errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ...models.shared.road.autoencoder import CHANNELS, TOKENS, DriveAutoencoder, MatrixConv, to_model, unpack
from .optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average

RATES = Rates(muon=0.012, adam=2e-3, warm_up=60, flat=0.3, floor=0.01)
BATCH = 12
LATENT_NOISE = 0.15  # largest sigma
REFINE_RATES = Rates(muon=0.006, adam=1e-3, warm_up=40, flat=0.2, floor=0.01)
REPORT_EVERY, CHECKPOINT_EVERY = 100, 200
Frames = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Report:
    """One line of progress: iteration, mean loss since the last one, PSNR on held-out frames or None."""

    iteration: int
    loss: float
    held_psnr: float | None


Reporter = Callable[[Report], None]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Frames [E, T, 80, 128, 3] and latents of each from several sources [S, E, T, 40, 32]: encoded, painted."""

    latents: tuple[NDArray[np.float16], ...]
    frames: Frames


@dataclass(frozen=True, slots=True)
class Budget:
    total: int
    seed: int
    rates: Rates


def contrast_weight(picture_N3HW: Tensor) -> Tensor:
    """1 on flat ground to 5 where the 5x5 neighbourhood varies, [N, 1, H, W]."""
    grey = picture_N3HW.mean(1, keepdim=True)
    near = F.avg_pool2d(grey, 5, 1, 2)
    spread = (F.avg_pool2d(grey * grey, 5, 1, 2) - near * near).clamp_min(0).sqrt()
    return 1 + 4 * (4 * spread).clamp_max(1)


def picture_loss(drawn: Tensor, picture: Tensor) -> Tensor:
    difference = drawn - picture
    weighted = (difference.abs() * contrast_weight(picture)).mean()
    across = (difference[..., 1:] - difference[..., :-1]).abs().mean()
    down = (difference[..., 1:, :] - difference[..., :-1, :]).abs().mean()
    return 0.6 * weighted + difference.square().mean() + 0.5 * (across + down)


Drawn = Callable[[np.random.Generator], tuple[Tensor, Tensor]]  # one batch: what was drawn and the picture it should be


def train(frames: Frames, held: Frames, path: Path, total: int, seed: int, report: Reporter) -> DriveAutoencoder:
    """Train encoder and decoder for `total` iterations (resuming from `path`) and return the averaged model."""
    torch.manual_seed(seed)
    model = DriveAutoencoder()

    def batch(rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        picked = frames[rng.integers(frames.shape[0], size=BATCH), rng.integers(frames.shape[1], size=BATCH)]
        picture = to_model(torch.from_numpy(picked))
        return model.decoder(_noised(model.encoder(picture))), picture

    return _fit(model, model, batch, held, path, Budget(total, seed, RATES), report)


def refine(
    model: DriveAutoencoder, data: Pairs, held: Frames, path: Path, total: int, seed: int, report: Reporter
) -> DriveAutoencoder:
    """Train the decoder on, while the encoder and so every latent stay as they are.

    It meets the latents that the transformer paints beside encoded ones, and learns to draw them as sharp.
    """
    torch.manual_seed(seed)
    model.encoder.eval().requires_grad_(False)
    model.decoder.train().requires_grad_(True)

    def batch(rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        e, t = rng.integers(data.frames.shape[0], size=BATCH), rng.integers(data.frames.shape[1], size=BATCH)
        tokens = np.stack([data.latents[i % len(data.latents)][e[i], t[i]] for i in range(BATCH)])
        latent = unpack(torch.from_numpy(tokens).float()).contiguous(memory_format=torch.channels_last)
        return model.decoder(_noised(latent)), to_model(torch.from_numpy(data.frames[e, t]))

    return _fit(model, model.decoder, batch, held, path, Budget(total, seed, REFINE_RATES), report)


def _noised(latent: Tensor) -> Tensor:
    return latent + LATENT_NOISE * torch.rand(len(latent), 1, 1, 1) * torch.randn_like(latent)


def _fit(
    model: DriveAutoencoder,
    learner: nn.Module,
    batch: Drawn,
    held: Frames,
    path: Path,
    budget: Budget,
    report: Reporter,
) -> DriveAutoencoder:
    """Optimise `learner`, a part of `model` or all of it."""
    average = averaged_copy(model)
    ends = {
        id(c.weight) for c in (model.encoder.inward, model.encoder.outward, model.decoder.inward, model.decoder.outward)
    }
    hidden = [m.weight for m in learner.modules() if isinstance(m, MatrixConv) and id(m.weight) not in ends]
    optimiser = optimiser_for(hidden, learner, budget.rates, (0.9, 0.98))
    first, losses = resume(path, model, average, optimiser), 0.0
    rng, held_x = np.random.default_rng([budget.seed, first]), to_model(torch.from_numpy(_held_frames(held)))
    for iteration in range(first, budget.total):
        drawn, picture = batch(rng)
        loss = picture_loss(drawn, picture)
        torch.autograd.backward(loss)
        optimiser.step(iteration, budget.total)
        update_average(average, model, min(0.998, iteration / (iteration + 20)))
        losses += float(loss.detach())
        done = iteration + 1
        if done % REPORT_EVERY == 0:
            psnr = held_psnr(average, held_x) if done % CHECKPOINT_EVERY == 0 else None
            report(Report(done, losses / REPORT_EVERY, psnr))
            losses = 0.0
        if done % CHECKPOINT_EVERY == 0 or done == budget.total:
            save_checkpoint(path, done, model, average, optimiser)
    return average.eval()


def _held_frames(held: NDArray[np.uint8]) -> NDArray[np.uint8]:
    episodes = np.repeat(np.arange(held.shape[0]), 3)
    times = np.tile(np.linspace(20, held.shape[1] - 20, 3).astype(int), held.shape[0])
    return np.ascontiguousarray(held[episodes, times])


@torch.inference_mode()
def held_psnr(model: DriveAutoencoder, picture: Tensor) -> float:
    model.eval()
    drawn = model.decoder(model.encoder(picture))
    error = ((drawn.clamp(-1, 1) - picture) / 2).square().mean((1, 2, 3))
    return float((-10 * error.log10()).mean())


@torch.inference_mode()
def encode_all(model: DriveAutoencoder, frames: NDArray[np.uint8], path: Path, progress: Callable[[int], None]) -> None:
    """Write the latents of every frame, float16 [E, T, 40, 32]."""
    episodes, times = frames.shape[:2]
    shape = (episodes, times, TOKENS, CHANNELS)
    out = np.lib.format.open_memmap(path.with_suffix(".part.npy"), "w+", np.float16, shape)
    model.eval()
    for e in range(episodes):
        for t in range(0, times, 60):
            picture = to_model(torch.from_numpy(np.array(frames[e, t : t + 60])))
            out[e, t : t + 60] = model.encode(picture).half().numpy()
        progress(times)
    out.flush()
    path.with_suffix(".part.npy").rename(path)
