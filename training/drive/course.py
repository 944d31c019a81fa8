"""A simulated drive beside which the model dreams: same keys, same looks, same innovations.

The simulator gives the first frames, chooses the keys and is the reference; it never sees the dream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.drive.memory import PICTURE_TOKENS
from ...models.drive.transformer import CondB, DriveTransformer
from ...models.shared.road.autoencoder import DriveAutoencoder, to_model
from .data import Innovator, lead_in, new_innovator
from .dream import Dream, begin
from .remember import remember
from .simulator.driver import Driver, new_driver
from .simulator.render import render
from .simulator.world import World, advance, first_world

GIVEN = 4  # frames a dream starts from


@dataclass(frozen=True, slots=True)
class Networks:
    transformer: DriveTransformer
    autoencoder: DriveAutoencoder
    sigmas: tuple[float, ...]


@dataclass(slots=True)
class Course:
    world: World
    innovator: Innovator
    driver: Driver

    def step(self, controls_BK: NDArray[np.int8] | None = None) -> CondB:
        """Drive one frame on with these keys, or with the driver's; what conditions that frame."""
        keys = self.driver.controls(self.world) if controls_BK is None else controls_BK
        innovations = self.innovator.draw()
        advance(self.world, keys, innovations)
        tensors = (keys.astype(np.float32), self.world.look(), innovations)
        return CondB(*(torch.from_numpy(a) for a in tensors))


def new_course(seed: int, theme_B: NDArray[np.int64]) -> Course:
    """Cars on the move in these themes."""
    rng = np.random.default_rng([seed, 4])
    world, innovator = first_world(rng, len(theme_B)), new_innovator(seed * 6151 + 17, len(theme_B))
    world.theme_B, world.theme_before_B = theme_B.copy(), theme_B.copy()
    lead_in(world, innovator, rng)
    return Course(world, innovator, new_driver(rng, len(theme_B)))


def start_dream(networks: Networks, course: Course, seed: int, keys_BK: NDArray[np.int8] | None = None) -> Dream:
    """Let the model see GIVEN frames of the course."""
    cond = course.step(keys_BK)
    dream = begin(networks.transformer, seen(networks, course), cond, networks.sigmas, seed)
    for _ in range(GIVEN - 1):
        cond = course.step(keys_BK)
        dream.observe(seen(networks, course), cond)
    return dream


def seen(networks: Networks, course: Course) -> Tensor:
    """The course's current pictures and memory as tokens [B, N, C]."""
    return whole_frame(networks.autoencoder, course.world)


def whole_frame(autoencoder: DriveAutoencoder, world: World) -> Tensor:
    """Picture and memory tokens [B, N, C] of a simulated world."""
    picture = autoencoder.encode(to_model(torch.from_numpy(render(world))))
    return torch.cat([picture, torch.from_numpy(remember(world))], 1)


def drawn(networks: Networks, tokens_BNC: Tensor) -> Tensor:
    """Pictures [B, 3, 80, 128] within [-1, 1]."""
    return networks.autoencoder.decode(tokens_BNC[:, :PICTURE_TOKENS]).clamp(-1, 1)
