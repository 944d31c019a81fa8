"""Dreamed worlds to measure (training/drive/clips.py says what a player is), with all of their past or a part of it.

A world begins with GIVEN frames of a simulated course; from then on the course gives nothing but a look.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...models.dream.card import CHANNELS, NOISE, PICTURE_TOKENS
from ...models.dream.transformer import DreamTransformer
from ...models.shared.road.autoencoder import DriveAutoencoder, to_model
from ..drive.clips import Keys
from ..drive.past import ALL, Known
from ..drive.players import themes_of
from ..drive.simulator.driver import Driver, new_driver
from ..drive.simulator.render import render
from ..drive.simulator.world import World, advance, first_world
from .data import lead_in
from .dice import Luck, new_luck
from .rollout import Dream, Pressed, begin

GIVEN = 34


@dataclass(frozen=True, slots=True)
class Networks:
    transformer: DreamTransformer
    autoencoder: DriveAutoencoder
    sigmas: tuple[float, ...]


@dataclass(slots=True)
class Course:
    """The simulated world beside a dream, its luck and its driver."""

    world: World
    luck: Luck
    driver: Driver

    def step(self, keys_SK: Keys | None = None) -> Keys:
        """Drive one frame on with these keys, or with the driver's; the keys."""
        keys = self.driver.controls(self.world) if keys_SK is None else keys_SK
        advance(self.world, keys, self.luck.draw()[1])
        return keys


def new_course(seed: int, theme_S: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Course:
    rng = np.random.default_rng([seed, 4])
    world, luck = first_world(rng, len(theme_S)), new_luck(rng, len(theme_S))
    world.theme_B, world.theme_before_B = theme_S.copy(), theme_S.copy()
    lead_in(world, luck, rng)
    return Course(world, luck, new_driver(rng, len(theme_S)))


@dataclass(slots=True)
class Dreamed:
    """See the module docstring."""

    networks: Networks
    course: Course
    dream: Dream
    noise: torch.Generator

    @property
    def world(self) -> World:
        return self.course.world

    @torch.inference_mode()
    def next(self, keys_SK: Keys) -> Tensor:
        self.course.step(keys_SK)
        tokens = self.dream.next(self.pressed(keys_SK), self.drawn((len(keys_SK), PICTURE_TOKENS, CHANNELS)))
        return self.networks.autoencoder.decode(tokens).clamp(-1, 1)

    def pressed(self, keys_SK: Keys) -> Pressed:
        look = torch.from_numpy(self.world.look())
        return Pressed(torch.from_numpy(keys_SK).float(), look, self.drawn((len(keys_SK), NOISE)))

    def drawn(self, shape: torch.Size | tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=self.noise)


@torch.inference_mode()
def dreamer(
    networks: Networks,
    seed: int,
    sessions: int,
    known: Known = ALL,
    keys_SK: Keys | None = None,
    alike: bool = False,
) -> Dreamed:
    """Worlds of themes drawn by `seed`, or (`alike`) as many that begin with the very same frames."""
    theme = np.repeat(themes_of(seed, 1), sessions) if alike else themes_of(seed, sessions)
    course = new_course(seed, theme[:1] if alike else theme)
    pictures, keys, looks = [], [], []
    for _ in range(GIVEN):
        keys.append(torch.from_numpy(course.step(keys_SK)).float())
        looks.append(torch.from_numpy(course.world.look()))
        pictures.append(networks.autoencoder.encode(to_model(torch.from_numpy(render(course.world)))))
    if alike:
        course = new_course(seed, theme)
    g = torch.Generator().manual_seed(seed)
    given = torch.stack(pictures, 1).expand(sessions, -1, -1, -1)
    pressed, look = (torch.stack(rows, 1).expand(sessions, -1, -1) for rows in (keys, looks))
    chance = torch.randn(sessions, GIVEN, NOISE, generator=g)
    made_of = [Pressed(*parts) for parts in zip(pressed.unbind(1), look.unbind(1), chance.unbind(1), strict=True)]
    dream = begin(networks.transformer, given, made_of, networks.sigmas, known)
    return Dreamed(networks, course, dream, g)
