"""What is new in each frame of the driving world, drawn from (seed, branch, frame) and a small carried state.

The simulator and the served model use this same process, so the world is a deterministic function of its
first frames, the keys, the look and these numbers. It knows neither pictures nor tensors.

    innovations_I = [ bend | spawn left | kind left | spawn right | kind right ]
      bend    curvature wanted where the road enters the view, in units of CURVATURE, within [-1, 1]
      spawn   1 when an object is offered at the side of the road where objects enter, else 0
      kind    -1 or +1 where spawn is 1 (which of the biome's two objects), else 0
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import philox

INNOVATIONS = 5
CURVATURE = 0.012  # 1/m at bend = 1
SPAWN_CHANCE = 0.10  # offers per frame and side
KIND_CHANGE_CHANCE = 0.03  # per frame and side: kinds come in rows
BEND_MEMORY = 0.985  # AR(1) coefficient per frame: about 67 frames
STRAIGHT = 0.35  # |bend drive| below this is straight road


class InnovationState(NamedTuple):
    """What the process carries from frame to frame; JSON-able numbers only."""

    bend_drive: float
    kind_left: int
    kind_right: int


def start(seed: int, branch: int) -> InnovationState:
    """The state before frame 0."""
    u = uniforms(seed, branch, -1)
    return InnovationState(_normal(u[0], u[1]), 1 if u[2] < 0.5 else -1, 1 if u[3] < 0.5 else -1)


def draw(seed: int, branch: int, frame: int, state: InnovationState) -> tuple[NDArray[np.float32], InnovationState]:
    """The innovations of one frame [5] and the state after it. Pure: same arguments, same numbers."""
    u = uniforms(seed, branch, frame)
    drive = BEND_MEMORY * state.bend_drive + math.sqrt(1 - BEND_MEMORY**2) * _normal(u[0], u[1])
    left = -state.kind_left if u[2] < KIND_CHANGE_CHANCE else state.kind_left
    right = -state.kind_right if u[3] < KIND_CHANGE_CHANCE else state.kind_right
    spawn_left, spawn_right = u[4] < SPAWN_CHANCE, u[5] < SPAWN_CHANCE
    bend = math.copysign(math.tanh(max(abs(drive) - STRAIGHT, 0.0)), drive)
    row = (bend, spawn_left, left if spawn_left else 0, spawn_right, right if spawn_right else 0)
    return np.array(row, np.float32), InnovationState(drive, left, right)


def uniforms(seed: int, branch: int, frame: int) -> NDArray[np.float64]:
    """Eight uniforms in [0, 1) of 53 bits; their counter [e + 1 | frame + 1 | 0 | 0] is none of the steps' noise."""
    return (philox.raw(seed, branch, (frame + 1) << 64, 8) >> 11).astype(np.float64) * 2.0**-53


def _normal(u: float, v: float) -> float:
    return math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)
