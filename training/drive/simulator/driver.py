"""A noisy driver that shows the model everything a person might do, and the themes that change around it.

More than a third of the time it does not drive well on purpose: it brakes to a stop, coasts, presses random
keys, runs off the road and comes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ....models.shared.road.look import BIOMES, THEMES, TIMES, WEATHERS, Theme, number_of, theme_of
from .world import CONTROLS, World, switch_theme

THEME_CHANGE_CHANCE = 1 / 40  # per frame
LONGEST_FADE = 16


class Mood(IntEnum):
    LANE = 0  # hold a place on the road at some speed
    STEER = 1  # hold one steering key, drive on
    BRAKE = 2  # brake hard, then stand or creep
    COAST = 3  # no keys at all
    RANDOM = 4  # any keys, changed often
    VERGE = 5  # leave the road, then come back


MOOD_CHANCE = (0.47, 0.17, 0.13, 0.06, 0.10, 0.07)


@dataclass(slots=True)
class Driver:
    rng: np.random.Generator
    mood_B: NDArray[np.int64]
    frames_left_B: NDArray[np.int64]
    place_B: NDArray[np.float64]  # wanted offset in metres
    pace_B: NDArray[np.float64]  # wanted speed in m/s
    held_B: NDArray[np.int64]  # -1, 0, 1: steering held by STEER
    random_BK: NDArray[np.int8]

    def controls(self, world: World) -> NDArray[np.int8]:
        """Keys [B, 4] for the next frame."""
        self._change_mood()
        mood, rng, n = self.mood_B, self.rng, len(self.mood_B)
        curvature = world.curvature()[:, 4]
        want = np.clip((self.place_B - world.offset_B) * 0.1 + curvature * world.speed_B * 0.4, -0.3, 0.3)
        error = want - world.heading_B
        steer = np.where(error > 0.05, 1, np.where(error < -0.05, -1, 0))
        steer = np.where(mood == Mood.STEER, self.held_B, steer)
        steer = np.where(mood == Mood.COAST, 0, steer)
        faster = self.pace_B - world.speed_B
        gas, brake = faster > 0.6, faster < -3.0
        gas, brake = gas & (mood != Mood.COAST), (brake & (mood != Mood.COAST)) | (mood == Mood.BRAKE)
        gas &= mood != Mood.BRAKE
        keys = np.stack([steer < 0, steer > 0, gas, brake], 1).astype(np.int8)
        again = (rng.random(n) < 0.12)[:, None]
        self.random_BK = np.where(again, rng.random((n, len(CONTROLS))) < (0.4, 0.4, 0.6, 0.2), self.random_BK)
        return np.where((mood == Mood.RANDOM)[:, None], self.random_BK, keys).astype(np.int8)

    def _change_mood(self) -> None:
        rng, n = self.rng, len(self.mood_B)
        self.frames_left_B -= 1
        new = self.frames_left_B <= 0
        mood = np.where(new, rng.choice(len(Mood), n, p=MOOD_CHANCE), self.mood_B)
        verge = rng.choice((-1, 1), n) * rng.uniform(4.2, 6.0, n)
        place = np.where(mood == Mood.VERGE, verge, rng.uniform(-3, 3, n))
        self.frames_left_B = np.where(new, rng.integers(8, 56, n), self.frames_left_B)
        self.place_B = np.where(new, place, self.place_B)
        self.pace_B = np.where(new, rng.uniform(5, 30, n), self.pace_B)
        self.held_B = np.where(new, rng.integers(-1, 2, n), self.held_B)
        self.mood_B = mood


def new_driver(rng: np.random.Generator, sessions: int) -> Driver:
    zeros = np.zeros(sessions, np.int64)
    keys = np.zeros((sessions, len(CONTROLS)), np.int8)
    return Driver(rng, zeros, zeros.copy(), np.zeros(sessions), np.full(sessions, 18.0), zeros.copy(), keys)


def change_themes(
    world: World, rng: np.random.Generator, chance: float | NDArray[np.float64] = THEME_CHANGE_CHANCE
) -> None:
    """Now and then fade a session to another theme, `chance` for all or for each; half of the changes touch one
    attribute only."""
    n = len(world.theme_B)
    changed = rng.random(n) < chance
    frames = np.where(rng.random(n) < 0.2, 1, rng.integers(1, LONGEST_FADE + 1, n))
    themes = world.theme_B.copy()
    for i in np.flatnonzero(changed):
        themes[i] = _one_attribute(int(themes[i]), rng) if rng.random() < 0.5 else rng.integers(THEMES)
    switch_theme(world, changed, themes, frames)


def _one_attribute(number: int, rng: np.random.Generator) -> int:
    theme = theme_of(number)
    match int(rng.integers(3)):
        case 0:
            return number_of(Theme(int(rng.integers(len(TIMES))), theme.biome, theme.weather))
        case 1:
            return number_of(Theme(theme.time, int(rng.integers(len(BIOMES))), theme.weather))
        case _:
            return number_of(Theme(theme.time, theme.biome, int(rng.integers(len(WEATHERS)))))
