"""Stage `decoder`: the decoder learns to draw what the student dreams as sharp as what was encoded.

The encoder, and so every latent, stays as it is. Half of the batches' latents are the simulator's own, half are what
the student predicts for the same frame from the recorded frames before it and the frame's own tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.dream.transformer import PICTURE, CondBF, DreamTransformer
from ...models.shared.road.autoencoder import DriveAutoencoder, to_model, unpack
from ..drive.optimise import Rates
from ..drive.simulator.driver import change_themes, new_driver
from ..drive.simulator.render import render
from ..drive.simulator.world import advance, first_world
from . import drawing
from .data import lead_in, private
from .dice import DICE, new_luck
from .drawing import BATCH
from .stage_recurrence import LABELS, Recurrence
from .windows import frame_noise

RATES = Rates(muon=0.006, adam=1e-3, warm_up=40, flat=0.3, floor=0.01)
LATENT_NOISE = 0.1
CONTEXT, TARGETS = 34, 12


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pictures [N, 80, 128, 3] and two latents of each [N, P, C]: encoded, dreamed."""

    frames: NDArray[np.uint8]
    encoded: NDArray[np.float16]
    dreamed: NDArray[np.float16]


@torch.no_grad()
def pairs(
    student: DreamTransformer,
    autoencoder: DriveAutoencoder,
    recurrence: Recurrence,
    seed: int,
    sessions: int,
    frames: int,
) -> Pairs:
    """Drive on and dream every frame but the first CONTEXT ones, each once, from what was before it."""
    rng, g = np.random.default_rng([seed, 8]), torch.Generator().manual_seed(seed)
    world, luck = first_world(rng, sessions), new_luck(rng, sessions)
    lead_in(world, luck, rng)
    driver = new_driver(rng, sessions)
    kept: list[NDArray[np.uint8]] = []
    latents = torch.zeros(sessions, CONTEXT + frames, PICTURE, student.shape.channels)
    controls = torch.zeros(sessions, CONTEXT + frames, student.shape.controls)
    look, dice = torch.zeros(*controls.shape[:2], student.shape.look), torch.zeros(*controls.shape[:2], DICE)
    labels = torch.zeros(*controls.shape[:2], LABELS)
    for frame in range(CONTEXT + frames):
        change_themes(world, rng)
        keys, (thrown, innovations) = driver.controls(world), luck.draw()
        advance(world, keys, innovations)
        kept.append(render(world))
        latents[:, frame] = autoencoder.encode(to_model(torch.from_numpy(kept[-1])))
        controls[:, frame], look[:, frame] = torch.from_numpy(keys).float(), torch.from_numpy(world.look())
        dice[:, frame] = torch.from_numpy(thrown)
        labels[:, frame] = torch.from_numpy(private(world, luck))
    noise = frame_noise(dice, g)
    cond = CondBF(controls, look, noise, recurrence.writes(labels), torch.ones(dice.shape[:2]))
    dreamed = latents.clone()
    for row in range(sessions):
        for first in range(0, frames - TARGETS + 1, TARGETS):
            part = slice(first, first + CONTEXT + TARGETS)
            dreamed[row, first + CONTEXT : first + CONTEXT + TARGETS] = _one_step(
                student, latents[row : row + 1, part], cond.row(row).part(part, torch.ones(1, CONTEXT + TARGETS)), g
            )
    later = (slice(None), slice(CONTEXT, None))
    return Pairs(
        np.stack(kept, 1)[later].reshape(-1, *kept[0].shape[1:]),
        latents[later].flatten(0, 1).half().numpy(),
        dreamed[later].flatten(0, 1).half().numpy(),
    )


def _one_step(student: DreamTransformer, latents: Tensor, cond: CondBF, g: torch.Generator) -> Tensor:
    """The last TARGETS frames of one window, each from pure noise."""
    noise = torch.randn(1, TARGETS, *latents.shape[2:], generator=g)
    level = torch.zeros(latents.shape[:2])
    made: Tensor = student.two_stream(latents, noise, level, cond, torch.tensor([student.shape.window]))[0]
    return made


def train(
    start: DriveAutoencoder,
    data: Pairs,
    held: NDArray[np.uint8],
    path: Path,
    total: int,
    seed: int,
    report: drawing.Report,
) -> DriveAutoencoder:
    """Train the decoder on (resuming from `path`) and return the averaged model."""
    torch.manual_seed(seed)
    model = start
    model.encoder.requires_grad_(False)
    model.decoder.train().requires_grad_(True)

    def batch(rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        picked = rng.integers(len(data.frames), size=BATCH)
        tokens = np.where(np.arange(BATCH)[:, None, None] % 2, data.dreamed[picked], data.encoded[picked])
        latent = unpack(torch.from_numpy(tokens.astype(np.float32))).contiguous(memory_format=torch.channels_last)
        noise = LATENT_NOISE * torch.rand(BATCH, 1, 1, 1) * torch.randn(latent.shape)
        return model.decoder(latent + noise), to_model(torch.from_numpy(data.frames[picked]))

    ends = (model.decoder.inward, model.decoder.outward)
    return drawing.train(model, model.decoder, ends, batch, RATES, held, path, total, seed, report)
