"""Geometry of the pseudo-3D view and the stretch of road the car can see.

    rows 32..79 of 80 show the ground; row r shows depth z = CAMERA * FOCAL / (r - 32 + 0.6) metres
    tape cell j of a session holds the curvature at arc length floor(s) + j, for 0 <= j <= ENTRY + 1

New road enters at ENTRY metres with the curvature `head`, which follows the wanted bend smoothly; beyond
ENTRY the view goes on with `head`, so nothing farther away has to be known. Objects enter at OBJECT_ENTRY.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .palette import HORIZON

Array = NDArray[np.float32]
WIDTH, HEIGHT = 128, 80
FOCAL, CAMERA = 70.0, 2.2  # pixels, metres above ground
HALF_ROAD = 3.5
FRAMES_PER_SECOND = 24.0
ENTRY = 56
OBJECT_ENTRY = 48.0
BEND_LENGTH = 14.0  # metres over which the entering curvature approaches the wanted one
_FAR = 120  # depth beyond which the row's own depth is clipped for bends

DEPTH_R: Array = (CAMERA * FOCAL / (np.arange(HORIZON, HEIGHT) - HORIZON + 0.6)).astype(np.float32)


def _displacement(depths: Array) -> Array:
    """Matrix [depth, metre] that maps curvature per metre ahead to lateral displacement (double integral)."""
    metres = np.arange(_FAR + 1, dtype=np.float64)
    heading = np.tril(np.ones((_FAR + 1, _FAR + 1)), -1)  # heading at metre i from curvature of cells before it
    lateral = np.cumsum(np.vstack([np.zeros(_FAR + 1), heading[:-1] + 0.5 * np.eye(_FAR + 1)[:-1]]), 0)
    wanted = np.minimum(depths, _FAR)
    return np.stack([np.interp(wanted, metres, lateral[:, j]) for j in range(_FAR + 1)], 1).astype(np.float32)


ROW_DISPLACEMENT = _displacement(DEPTH_R)  # [48, 121]
METRE_DISPLACEMENT = _displacement(np.arange(OBJECT_ENTRY + 3, dtype=np.float32))  # [51, 121]


def curvature_ahead(tape_BC: Array, head_B: Array, distance_B: NDArray[np.float64]) -> Array:
    """Curvature at 0, 1, .. 120 metres ahead of each car [B, 121]."""
    part_B1 = (distance_B - np.floor(distance_B)).astype(np.float32)[:, None]
    near = tape_BC[:, :-1] * (1 - part_B1) + tape_BC[:, 1:] * part_B1
    return np.concatenate([near, np.repeat(head_B[:, None], _FAR + 1 - near.shape[1], 1)], 1)


def extend(tape_BC: Array, head_B: Array, before_B: NDArray[np.float64], after_B: NDArray[np.float64]) -> None:
    """Shift the tape in place as the cars move on; cells that enter take the head's curvature."""
    for _ in range(2):  # a car covers at most 1.25 m in a frame
        passed = np.floor(after_B) > np.floor(before_B)
        tape_BC[passed, :-1] = tape_BC[passed, 1:]
        tape_BC[passed, -1] = head_B[passed]
        before_B = np.where(passed, before_B + 1, before_B)


def road_centre(
    displacement_DM: Array, curvature_BM: Array, offset_B: Array, heading_B: Array, depth_D: Array
) -> Array:
    """Lateral place of the road's middle in metres at each depth [B, D], right positive."""
    return np.asarray(
        curvature_BM @ displacement_DM.T - offset_B[:, None] - np.tan(heading_B)[:, None] * depth_D[None], np.float32
    )
