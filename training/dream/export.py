"""From checkpoints to the files the card serves: half-precision safetensors with their recipe as metadata."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ...models.shared.road.autoencoder import DriveAutoencoder, to_model
from ...models.shared.road.initial_latents import FIRST_FRAMES, VARIANTS
from ...models.shared.road.look import THEMES
from ..drive.export import OPENING_SPEED
from ..drive.export import save_half as save_weights
from ..drive.simulator.render import render
from ..drive.simulator.world import advance, first_world
from .data import lead_in
from .dice import new_luck

__all__ = ["openings", "save_openings", "save_weights"]


@torch.inference_mode()
def openings(autoencoder: DriveAutoencoder, seed: int) -> Tensor:
    """First pictures [VARIANTS, 60, 3, P, C] of every theme, newest first: on the road, at a fair pace."""
    themes = np.tile(np.arange(THEMES), VARIANTS)
    rng = np.random.default_rng([seed, 4])
    world, luck = first_world(rng, len(themes)), new_luck(rng, len(themes))
    world.theme_B, world.theme_before_B = themes.copy(), themes.copy()
    lead_in(world, luck, rng)
    world.offset_B[:], world.heading_B[:], world.speed_B[:] = 0.0, 0.0, OPENING_SPEED
    gas = np.tile(np.array([0, 0, 1, 0], np.int8), (len(themes), 1))
    frames = []
    for _ in range(FIRST_FRAMES):
        advance(world, gas, luck.draw()[1])
        frames.append(autoencoder.encode(to_model(torch.from_numpy(render(world)))))
    newest_first = torch.stack(frames[::-1], 1)
    return newest_first.reshape(VARIANTS, THEMES, *newest_first.shape[1:])


def save_openings(autoencoder: DriveAutoencoder, seed: int, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({"openings": openings(autoencoder, seed).half().contiguous()}, path, {"seed": str(seed)})
