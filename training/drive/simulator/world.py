"""The state of a batch of simulated cars and how one frame of keys and innovations moves it.

Shapes: B sessions, S sides (left, right), O places for objects on each side. Deterministic: all that is
random comes in through the first state, the controls, the innovations and the themes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....models.drive.innovations import CURVATURE
from ....models.shared.road.look import ONE_HOT
from .road import BEND_LENGTH, ENTRY, FRAMES_PER_SECOND, HALF_ROAD, OBJECT_ENTRY, curvature_ahead, extend

Array = NDArray[np.float32]
CONTROLS = ("left", "right", "gas", "brake")
PLACES = 7  # objects per side: 48 m at 8 m spacing, and one
SPACING = 8.0  # metres between objects of one side
TOP_SPEED = 30.0
LIMIT = 5.0  # |offset| never exceeds this, so the road stays in view
GAS, BRAKE, DRAG = 7.0, 12.0, 1.4  # m/s2
STEER = 0.62  # rad/s


@dataclass(slots=True)
class World:
    distance_B: NDArray[np.float64]  # metres driven
    offset_B: Array  # metres right of the road's middle
    heading_B: Array  # radians right of the road's direction
    speed_B: Array  # m/s
    yaw_B: NDArray[np.float64]  # radians turned since the start: where the skyline is
    lean_B: Array  # [-1, 1]
    braking_B: NDArray[np.bool_]
    head_B: Array  # curvature that enters the view
    tape_BC: Array
    object_BSO: NDArray[np.float64]  # where objects stand, in metres driven; -1e9 for an empty place
    kind_BSO: NDArray[np.int8]  # -1 or +1
    theme_B: NDArray[np.int64]  # theme number that is faded to
    theme_before_B: NDArray[np.int64]
    fade_B: Array  # share of `theme_B` in the picture, 1 when no fade is running
    fade_frames_B: NDArray[np.int64]

    def look(self) -> Array:
        """The look vector of the current frame [B, 12]."""
        f = self.fade_B[:, None]
        return np.asarray(ONE_HOT[self.theme_B] * f + ONE_HOT[self.theme_before_B] * (1 - f), np.float32)

    def curvature(self) -> Array:
        """Curvature ahead [B, 121] at whole metres."""
        return curvature_ahead(self.tape_BC, self.head_B, self.distance_B)


def first_world(rng: np.random.Generator, sessions: int) -> World:
    """Random cars on random bends, without objects yet (drive on for 100 frames to meet them)."""
    n = sessions
    head = rng.uniform(-0.5, 0.5, n).astype(np.float32) * CURVATURE
    theme = rng.integers(0, len(ONE_HOT), n)
    return World(
        distance_B=rng.uniform(0, 5000, n),
        offset_B=rng.uniform(-2, 2, n).astype(np.float32),
        heading_B=np.zeros(n, np.float32),
        speed_B=rng.uniform(6, 26, n).astype(np.float32),
        yaw_B=rng.uniform(0, 6.28, n),
        lean_B=np.zeros(n, np.float32),
        braking_B=np.zeros(n, np.bool_),
        head_B=head,
        tape_BC=np.repeat(head[:, None], ENTRY + 2, 1),
        object_BSO=np.full((n, 2, PLACES), -1e9),
        kind_BSO=np.ones((n, 2, PLACES), np.int8),
        theme_B=theme,
        theme_before_B=theme.copy(),
        fade_B=np.ones(n, np.float32),
        fade_frames_B=np.ones(n, np.int64),
    )


def switch_theme(
    world: World, changed_B: NDArray[np.bool_], theme_B: NDArray[np.int64], frames_B: NDArray[np.int64]
) -> None:
    """Start a cross-fade of `frames_B` frames; sessions whose fade is still running keep it."""
    start = changed_B & (world.fade_B >= 1)
    world.theme_before_B = np.where(start, world.theme_B, world.theme_before_B)
    world.theme_B = np.where(start, theme_B, world.theme_B)
    world.fade_frames_B = np.where(start, frames_B, world.fade_frames_B)
    world.fade_B = np.where(start, 0.0, world.fade_B).astype(np.float32)


def advance(world: World, controls_BK: NDArray[np.int8], innovations_BI: Array) -> None:
    """Move every car by one frame, in place."""
    dt = 1 / FRAMES_PER_SECOND
    steer = (controls_BK[:, 1].astype(np.float32) - controls_BK[:, 0]).astype(np.float32)
    _drive(world, steer, controls_BK[:, 2], controls_BK[:, 3], dt)
    step_B = world.speed_B * dt
    wanted_B = innovations_BI[:, 0] * CURVATURE
    world.head_B = (world.head_B + (wanted_B - world.head_B) * (1 - np.exp(-step_B / BEND_LENGTH))).astype(np.float32)
    before = world.distance_B
    world.distance_B = before + step_B
    extend(world.tape_BC, world.head_B, before, world.distance_B)
    for side in range(2):
        _spawn(world, side, innovations_BI[:, 1 + 2 * side], innovations_BI[:, 2 + 2 * side])
    world.fade_B = np.minimum(1, world.fade_B + 1 / world.fade_frames_B).astype(np.float32)


def _drive(world: World, steer_B: Array, gas_B: NDArray[np.int8], brake_B: NDArray[np.int8], dt: float) -> None:
    curvature = world.curvature()[:, 0]
    speed, offset, heading = world.speed_B, world.offset_B, world.heading_B
    grass = np.abs(offset) > HALF_ROAD
    push = GAS * gas_B - BRAKE * brake_B - DRAG - grass * np.maximum(speed - 9, 0) * 1.5
    speed = np.clip(speed + dt * push, 0, TOP_SPEED)
    grip = np.minimum(speed / 8, 1)
    beyond = np.sign(offset) * np.maximum(np.abs(offset) - 4.0, 0)  # the verge turns the car back gently
    turn = steer_B * STEER * grip - curvature * speed * 0.55 - 1.5 * heading * grip - 0.9 * beyond * grip
    heading = np.clip(heading + dt * turn, -0.36, 0.36)
    offset = offset + dt * speed * heading
    outward = (np.abs(offset) > LIMIT) & (heading * offset > 0)
    world.heading_B = np.where(outward, heading * 0.6, heading).astype(np.float32)
    world.offset_B = np.clip(offset, -LIMIT, LIMIT).astype(np.float32)
    world.speed_B = speed.astype(np.float32)
    world.yaw_B = world.yaw_B + dt * curvature * speed
    world.lean_B = (world.lean_B + 0.4 * (steer_B - world.lean_B)).astype(np.float32)
    world.braking_B = brake_B > 0


def _spawn(world: World, side: int, offer_B: Array, kind_B: Array) -> None:
    """An offered object is taken when the last one of its side is SPACING away and the car moves."""
    enters = world.distance_B + OBJECT_ENTRY
    last = world.object_BSO[:, side].max(1)
    taken = np.flatnonzero((offer_B > 0) & (enters - last >= SPACING) & (world.speed_B > 1))
    place = world.object_BSO[taken, side].argmin(1)
    world.object_BSO[taken, side, place] = enters[taken]
    world.kind_BSO[taken, side, place] = np.where(kind_B[taken] > 0, 1, -1)
