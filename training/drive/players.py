"""Worlds to measure: the simulator itself, and the painter beside its simulated course (clips.py: what a player is).

Each world of a batch has a look of its own and keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.shared.road.look import THEMES
from .clips import Keys, simulated
from .course import Course, Networks, drawn, new_course, start_dream
from .dream import Dream
from .past import ALL, Known
from .simulator.driver import new_driver
from .simulator.world import World


def themes_of(seed: int, sessions: int) -> NDArray[np.int64]:
    """Looks of worlds; seeds of one hundred have the same, so that their clips differ in all but that."""
    return np.random.default_rng([seed // 100, 1]).integers(0, THEMES, sessions)


@dataclass(slots=True)
class Simulated:
    """The simulator; `lost` is the share of frames that are shown without any of their objects."""

    course: Course
    lost: float
    rng: np.random.Generator

    @property
    def world(self) -> World:
        return self.course.world

    def next(self, keys_SK: Keys) -> Tensor:
        self.course.step(keys_SK)
        world = self.course.world
        kept = world.object_BSO.copy()
        world.object_BSO[self.rng.random(len(kept)) < self.lost] = -1e9
        picture = simulated(world)
        world.object_BSO[:] = kept
        return picture


def simulator(seed: int, sessions: int, known: Known = ALL, alike: bool = False, lost: float = 0.0) -> Simulated:
    """It has no past that could be cut; `alike` as for the painter."""
    course = new_course(seed, themes_of(seed, 1 if alike else sessions))
    whole = _repeated(course, sessions) if alike else course
    return Simulated(whole, lost, np.random.default_rng([seed, 2]))


@dataclass(slots=True)
class Painted:
    """Today's painter, whose innovations are those of the course beside it."""

    networks: Networks
    course: Course
    dream: Dream

    @property
    def world(self) -> World:
        return self.course.world

    @torch.inference_mode()
    def next(self, keys_SK: Keys) -> Tensor:
        return drawn(self.networks, self.dream.next(self.course.step(keys_SK)))


def painter(networks: Networks, seed: int, sessions: int, known: Known = ALL, alike: bool = False) -> Painted:
    """Worlds of themes drawn by `seed`, or (`alike`) as many that begin alike and differ in what the future draws.

    Of `known` it heeds what is kept: its memory is explicit and whole.
    """
    course = new_course(seed, themes_of(seed, 1 if alike else sessions))
    if alike:
        course = _repeated(course, sessions)
    dream = start_dream(networks, course, seed)
    dream.known = known.kept
    return Painted(networks, course, dream)


def _repeated(course: Course, sessions: int) -> Course:
    """The same world as often as asked, each with a seed of its own for what comes."""
    for one in fields(course.world):
        setattr(course.world, one.name, np.repeat(getattr(course.world, one.name), sessions, 0))
    innovator = course.innovator
    innovator.states = innovator.states * sessions
    return Course(course.world, innovator, new_driver(np.random.default_rng(0), sessions))
