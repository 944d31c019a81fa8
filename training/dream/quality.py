"""Every figure promised for the dreamed world, measured on held-out seeds; the simulator's own figure stands beside.

The first GIVEN frames of a world are the simulator's; from there on it has its own past, keys, a look and noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import torch
from torch import Tensor

from ...models.dream.card import RECIPE
from ...models.dream.runtime import load_networks
from ...models.shared.road.look import THEMES, theme_of
from ..drive.clips import Keys, Player
from ..drive.figures import WorldFigures, world_figures
from ..drive.judge import Judge, load_judge
from ..drive.past import Cut
from ..drive.quality import save_rows
from ..drive.simulator.world import switch_theme
from .journey import Journey, travel
from .player import Networks, dreamer

SEED = 40_001
LEFT, RIGHT, GAS, BRAKE = (1, 0, 1, 0), (0, 1, 1, 0), (0, 0, 1, 0), (0, 0, 0, 1)


class DreamReport(msgspec.Struct, frozen=True):
    steps: int
    steer_sign_12: float
    steer_sign_24: float
    braked_speed: float
    look_time: float  # 12 frames after a fade over 10 began
    look_biome: float
    look_weather: float
    other_noise: float  # mean difference of pictures (of 255) after 24 frames, by noise alone
    journey: Journey  # 300 frames, or 2,000
    far: Journey | None  # 10,000 frames; None in the short form
    world: WorldFigures

    def failures(self) -> list[str]:
        """Which figures miss their mark, with the numbers."""
        least = {
            "steer sign at 12 frames": (self.steer_sign_12, 0.97),
            "steer sign at 24 frames": (self.steer_sign_24, 0.97),
            "time of day after a switch": (self.look_time, 0.95),
            "biome after a switch": (self.look_biome, 0.95),
            "weather after a switch": (self.look_weather, 0.95),
            f"road present in {self.journey.frames:,} frames": (self.journey.road, 0.97),
        }
        if self.far is not None:
            least[f"road present in {self.far.frames:,} frames"] = (self.far.road, 0.95)
        low = [f"{name} {value:.3f} is below {mark}" for name, (value, mark) in least.items() if value < mark]
        if self.braked_speed > 3.0:
            low.append(f"speed after braking {self.braked_speed:.2f} is above 3.0")
        return low + self.world.failures()


def measure_card(
    weights: Path, judge: Path, sheets: Path | None, short: bool, progress: Callable[[int], None]
) -> DreamReport:
    """Measure the files the card serves, with the recipe's default number of steps. `sheets` gets pictures."""
    networks = Networks(*load_networks(weights), RECIPE.levels(RECIPE.default.steps))
    return measure(networks, load_judge(judge), sheets, short, progress)


@torch.inference_mode()
def measure(
    networks: Networks, judge: Judge, sheets: Path | None, short: bool, progress: Callable[[int], None]
) -> DreamReport:
    """On one thread; `progress` is told of frames."""
    torch.set_num_threads(1)
    sessions = 16 if short else 48
    early, late = steer_signs(networks, judge, sessions)
    time, biome, weather = switched(networks, judge, sessions)
    trip, stills = travel(networks, judge, 5 if short else 10, 300 if short else 2000, SEED + 9, progress)
    far, far_stills = (None, None) if short else travel(networks, judge, 10, 10_000, SEED + 10, progress)
    for name, pictures in (("journey", stills), ("far", far_stills)):
        if sheets is not None and pictures is not None:
            sheets.mkdir(parents=True, exist_ok=True)
            save_rows(pictures, sheets / f"{name}.png")
    return DreamReport(
        steps=len(networks.sigmas),
        steer_sign_12=early,
        steer_sign_24=late,
        braked_speed=braked(networks, judge, sessions),
        look_time=time,
        look_biome=biome,
        look_weather=weather,
        other_noise=other_noise(networks),
        journey=trip,
        far=far,
        world=world_figures(partial(dreamer, networks), tuple(Cut), judge, SEED, short, progress),
    )


def steer_signs(networks: Networks, judge: Judge, sessions: int) -> tuple[float, float]:
    """Share of worlds whose road lies more to the right under LEFT than under RIGHT, after 12 and 24 frames."""
    centres = []
    for pressed in (LEFT, RIGHT):
        player = dreamer(networks, SEED + 4, sessions)
        centres.append([judge(p).centre_NR[:, 1] for p in _frames(player, pressed, sessions, (11, 23))])
    early, late = (float((left > right).float().mean()) for left, right in zip(*centres, strict=True))
    return early, late


def braked(networks: Networks, judge: Judge, sessions: int) -> float:
    """Mean speed shown after 24 frames with the brake down."""
    (picture,) = _frames(dreamer(networks, SEED + 5, sessions), BRAKE, sessions, (23,))
    return float(judge(picture).speed_N.mean())


def switched(networks: Networks, judge: Judge, sessions: int) -> tuple[float, float, float]:
    """Share of worlds that show the new time, biome and weather 12 frames after a fade over 10 began."""
    player = dreamer(networks, SEED + 6, sessions)
    after = (player.world.theme_B + np.random.default_rng(SEED).integers(1, THEMES, sessions)) % THEMES
    switch_theme(player.world, np.ones(sessions, np.bool_), after, np.full(sessions, 10))
    (picture,) = _frames(player, GAS, sessions, (11,))
    wanted = torch.tensor([theme_of(int(number)) for number in after])
    right = (judge(picture).attributes() == wanted).float().mean(0)
    return float(right[0]), float(right[1]), float(right[2])


def other_noise(networks: Networks, frames: int = 24) -> float:
    """How far two worlds of the same first frames and keys are apart, in levels of 255."""
    (picture,) = _frames(dreamer(networks, SEED + 3, 2, alike=True), GAS, 2, (frames - 1,))
    return float((picture[0] - picture[1]).abs().mean()) * 127.5


def _frames(player: Player, pressed: tuple[int, int, int, int], sessions: int, at: tuple[int, ...]) -> list[Tensor]:
    """The pictures of these frames under keys that stay down."""
    keys: Keys = np.tile(np.array(pressed, np.int8), (sessions, 1))
    every = [player.next(keys) for _ in range(at[-1] + 1)]
    return [every[frame] for frame in at]
