"""Stage `decoder`: the decoder learns to draw what the student dreams as sharp as what was encoded.

The encoder, and so every latent, stays as it is. Half of the batches' latents are the simulator's own, half are what
the student predicts for the same frame from the recorded frames before it and the frame's own dice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.dream.transformer import PICTURE, CondBF, DreamTransformer
from ...models.shared.road.autoencoder import DriveAutoencoder, MatrixConv, to_model, unpack
from ..drive.optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from ..drive.simulator.driver import change_themes, new_driver
from ..drive.simulator.render import render
from ..drive.simulator.world import advance, first_world
from ..drive.stage_autoencoder import held_psnr, picture_loss
from .data import lead_in
from .dice import DICE, new_luck
from .stage_autoencoder import SQUARED
from .windows import frame_noise

RATES = Rates(muon=0.006, adam=1e-3, warm_up=40, flat=0.3, floor=0.01)
BATCH, LATENT_NOISE, REPORT_EVERY = 12, 0.1, 100
CONTEXT, TARGETS = 34, 12


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pictures [N, 80, 128, 3] and two latents of each [N, P, C]: encoded, dreamed."""

    frames: NDArray[np.uint8]
    encoded: NDArray[np.float16]
    dreamed: NDArray[np.float16]


@torch.no_grad()
def pairs(student: DreamTransformer, autoencoder: DriveAutoencoder, seed: int, sessions: int, frames: int) -> Pairs:
    """Drive on and dream every frame but the first CONTEXT ones, each once, from what was before it."""
    rng, g = np.random.default_rng([seed, 8]), torch.Generator().manual_seed(seed)
    world, luck = first_world(rng, sessions), new_luck(rng, sessions)
    lead_in(world, luck, rng)
    driver = new_driver(rng, sessions)
    kept: list[NDArray[np.uint8]] = []
    latents = torch.zeros(sessions, CONTEXT + frames, PICTURE, student.shape.channels)
    controls = torch.zeros(sessions, CONTEXT + frames, student.shape.controls)
    look, dice = torch.zeros(*controls.shape[:2], student.shape.look), torch.zeros(*controls.shape[:2], DICE)
    for frame in range(CONTEXT + frames):
        change_themes(world, rng)
        keys, (thrown, innovations) = driver.controls(world), luck.draw()
        advance(world, keys, innovations)
        kept.append(render(world))
        latents[:, frame] = autoencoder.encode(to_model(torch.from_numpy(kept[-1])))
        controls[:, frame], look[:, frame] = torch.from_numpy(keys).float(), torch.from_numpy(world.look())
        dice[:, frame] = torch.from_numpy(thrown)
    dreamed = latents.clone()
    for row in range(sessions):
        for first in range(0, frames - TARGETS + 1, TARGETS):
            part = slice(first, first + CONTEXT + TARGETS)
            dreamed[row, first + CONTEXT : first + CONTEXT + TARGETS] = _one_step(
                student, latents[row, part], controls[row, part], look[row, part], dice[row, part], g
            )
    later = (slice(None), slice(CONTEXT, None))
    return Pairs(
        np.stack(kept, 1)[later].reshape(-1, *kept[0].shape[1:]),
        latents[later].flatten(0, 1).half().numpy(),
        dreamed[later].flatten(0, 1).half().numpy(),
    )


def _one_step(
    student: DreamTransformer, latents: Tensor, controls: Tensor, look: Tensor, dice: Tensor, g: torch.Generator
) -> Tensor:
    """The last TARGETS frames of one window, each from pure noise."""
    noise = torch.randn(1, TARGETS, *latents.shape[1:], generator=g)
    cond = CondBF(controls[None], look[None], frame_noise(dice[None], g), torch.ones(1, len(latents)))
    made, _ = student.two_stream(
        latents[None],
        noise,
        torch.zeros(1, len(latents)),
        cond,
        torch.tensor([student.shape.window]),
    )
    return made[0]


def train(
    start: DriveAutoencoder,
    data: Pairs,
    held: NDArray[np.uint8],
    path: Path,
    total: int,
    seed: int,
    report: Callable[[int, float, float], None],
) -> DriveAutoencoder:
    """Train the decoder on (resuming from `path`); `report` gets iteration, loss, dB of held-out encoded pictures."""
    torch.manual_seed(seed)
    model = start
    model.encoder.requires_grad_(False)
    model.decoder.train().requires_grad_(True)
    average = averaged_copy(model)
    ends = (model.decoder.inward, model.decoder.outward)
    hidden = [m.weight for m in model.decoder.modules() if isinstance(m, MatrixConv) and m not in ends]
    optimiser = optimiser_for(hidden, model.decoder, RATES, (0.9, 0.98))
    first, losses = resume(path, model, average, optimiser), 0.0
    rng, held_x = np.random.default_rng([seed, first]), to_model(torch.from_numpy(held))
    for iteration in range(first, total):
        picked = rng.integers(len(data.frames), size=BATCH)
        tokens = np.where(np.arange(BATCH)[:, None, None] % 2, data.dreamed[picked], data.encoded[picked])
        latent = unpack(torch.from_numpy(tokens.astype(np.float32))).contiguous(memory_format=torch.channels_last)
        picture = to_model(torch.from_numpy(data.frames[picked]))
        noise = LATENT_NOISE * torch.rand(BATCH, 1, 1, 1) * torch.randn(latent.shape)
        with torch.autocast("cpu", torch.bfloat16):
            drawn = model.decoder(latent + noise)
        drawn = drawn.float()
        loss = picture_loss(drawn, picture) + SQUARED * (drawn - picture).square().mean()
        torch.autograd.backward(loss)
        optimiser.step(iteration, total)
        update_average(average, model, min(0.998, iteration / (iteration + 20)))
        losses += float(loss.detach())
        if (iteration + 1) % REPORT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, model, average, optimiser)
            report(iteration + 1, losses / REPORT_EVERY, held_psnr(average, held_x))
            losses = 0.0
    return average.eval()
