"""Long dreams through many looks, driven by what they show, judged now and then."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from ...models.shared.road.autoencoder import to_frames
from ...models.shared.road.look import THEMES, theme_of
from ..drive.clips import Keys, looking_driver, simulated
from ..drive.journey import FADE, JUDGED_EVERY, LOOK_EVERY, STILLS
from ..drive.judge import Judge
from ..drive.probes import sharpness
from ..drive.simulator.world import switch_theme
from .player import Networks, dreamer


class Journey(msgspec.Struct, frozen=True):
    """Means over all judged frames of all worlds; objects and sharpness against the simulator's in the same looks."""

    frames: int
    worlds: int
    road: float
    road_last_tenth: float
    look: float  # share of attributes that match, LOOK_EVERY / 2 frames after a look began to change and later
    objects: float
    sharpness: float


@torch.inference_mode()
def travel(
    networks: Networks, judge: Judge, worlds: int, frames: int, seed: int, progress: Callable[[int], None]
) -> tuple[Journey, NDArray[np.uint8]]:
    """A new look every LOOK_EVERY frames; also stills [worlds, STILLS, 80, 128, 3]. `progress` is told of frames."""
    player, driver, rng = (
        dreamer(networks, seed, worlds),
        looking_driver(seed, worlds),
        np.random.default_rng([seed, 3]),
    )
    keys: Keys = np.tile(np.array([0, 0, 1, 0], np.int8), (worlds, 1))
    read, stills = list[list[float]](), list[NDArray[np.uint8]]()
    kept = set((np.linspace(0, frames - 1, STILLS) // JUDGED_EVERY * JUDGED_EVERY).astype(int).tolist())
    for frame in range(frames):
        if frame and frame % LOOK_EVERY == 0:
            switch_theme(
                player.world, np.ones(worlds, np.bool_), rng.integers(0, THEMES, worlds), np.full(worlds, FADE)
            )
        picture = player.next(keys)
        seen = judge(picture)
        keys = driver.keys(seen)
        if frame % JUDGED_EVERY == 0:
            beside = simulated(player.world)
            wanted = torch.tensor([theme_of(int(number)) for number in player.world.theme_B])
            settled = frame % LOOK_EVERY >= LOOK_EVERY // 2
            right = float((seen.attributes() == wanted).float().mean()) if settled else float("nan")
            both = [(float(judge(x).objects_N.mean()), float(sharpness(x).mean())) for x in (picture, beside)]
            read.append([float((seen.road_N > 0).float().mean()), right, *both[0], *both[1]])
            progress(worlds * JUDGED_EVERY)
        if frame in kept:
            stills.append(to_frames(picture).numpy())
    road, look, objects, sharp, objects_beside, sharp_beside = np.nanmean(read, 0).tolist()
    last = float(np.mean([row[0] for row in read[-len(read) // 10 :]]))
    made = Journey(frames, worlds, road, last, look, objects / objects_beside, sharp / sharp_beside)
    return made, np.stack(stills, 1)
