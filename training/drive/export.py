"""From checkpoints to the files the card serves: half-precision safetensors with their recipe as metadata."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ...models.shared.road.autoencoder import DriveAutoencoder
from ...models.shared.road.initial_latents import FIRST_FRAMES, VARIANTS
from ...models.shared.road.look import THEMES
from .course import new_course, whole_frame

OPENING_SPEED = 15.0


def save_half(module: nn.Module, path: Path, metadata: dict[str, str]) -> None:
    """Parameters and buffers as float16."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.half().contiguous() for name, tensor in module.state_dict().items()}, path, metadata)


@torch.inference_mode()
def openings(autoencoder: DriveAutoencoder, seed: int) -> Tensor:
    """First latents [VARIANTS, 60, 3, N, C] of every theme, newest first: on the road, at a fair pace."""
    themes = np.tile(np.arange(THEMES), VARIANTS)
    course = new_course(seed, themes)
    world = course.world
    world.offset_B[:], world.heading_B[:], world.speed_B[:] = 0.0, 0.0, OPENING_SPEED
    gas = np.tile(np.array([0, 0, 1, 0], np.int8), (len(themes), 1))
    frames = []
    for _ in range(FIRST_FRAMES):
        course.step(gas)
        frames.append(whole_frame(autoencoder, world))
    newest_first = torch.stack(frames[::-1], 1)
    return newest_first.reshape(VARIANTS, THEMES, *newest_first.shape[1:])


def save_openings(autoencoder: DriveAutoencoder, seed: int, path: Path) -> None:
    save_file({"openings": openings(autoencoder, seed).half().contiguous()}, path, {"seed": str(seed)})
