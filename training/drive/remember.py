"""What the memory tokens of `models/drive/memory.py` say about a simulated world: their targets in training.

Shapes: B sessions, M = 3 memory tokens, C = 32 channels, S sides, O objects of a side. All values are of order one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...models.drive.innovations import CURVATURE
from ...models.drive.memory import BEND_METRES, CHANNELS, MARK, MEMORY_TOKENS, PLACE_METRES
from .simulator.panorama import PERIOD
from .simulator.road import FOCAL
from .simulator.world import World

Array = NDArray[np.float32]
PLACES: Array = np.array(PLACE_METRES, np.float32)
_SPREAD: Array = np.gradient(PLACES).astype(np.float32)  # a mark is about one place wide


def remember(world: World) -> Array:
    """Memory tokens [B, M, C] of the world as it stands."""
    tokens = np.zeros((len(world.speed_B), MEMORY_TOKENS, CHANNELS), np.float32)
    tokens[:, 0] = _car(world)
    ahead_BSO = world.object_BSO - world.distance_B[:, None, None]
    for side in range(2):
        tokens[:, 1 + side] = marks(ahead_BSO[:, side], world.kind_BSO[:, side])
    return tokens


def _car(world: World) -> Array:
    speed, stripe = world.speed_B, 2 * np.pi * world.distance_B / 9.0
    turned = 2 * np.pi * world.yaw_B * FOCAL / PERIOD
    columns = [
        (speed - 14) / 7,
        np.minimum(speed / 4, 2) - 1,
        world.offset_B / 2,
        world.heading_B * 6,
        world.lean_B * 1.5,
        np.where(world.braking_B, 1.5, -0.5),
        *(wave(k * stripe) * 1.4 for k in (1, 2) for wave in (np.sin, np.cos)),
        *(wave(k * turned) * 1.4 for k in (1, 2, 4) for wave in (np.sin, np.cos)),
    ]
    bends = world.curvature()[:, list(BEND_METRES)] * (1.6 / CURVATURE)
    return np.concatenate([np.stack(columns, 1), bends], 1).astype(np.float32)


def marks(ahead_BO: NDArray[np.float64], kind_BO: NDArray[np.int8]) -> Array:
    """A bump of +-MARK at each object's distance [B, C]."""
    gap_BOC = (ahead_BO[..., None] - PLACES) / _SPREAD
    bump_BOC = np.exp(-0.5 * gap_BOC**2) * (ahead_BO[..., None] > 0)
    return np.asarray((bump_BOC * kind_BO[..., None]).sum(1) * MARK, np.float32)
