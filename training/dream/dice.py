"""The simulator's luck as plain Gaussian dice, so that a frame's noise can carry it in training.

    dice_D = [ bend | new kind left | new kind right | offer left | offer right ]     each N(0, 1), each frame anew

`Course.draw` turns dice into what the simulator takes. The network is never told how: in training the first numbers
of a frame's noise are its dice, all other noise is free; when it dreams all of it is plain noise. So
the noise has the same distribution in both, and what a bend or a tree is made of has to be learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
DICE = 5
BEND_MEMORY = 0.98  # AR(1) coefficient per frame
STRAIGHT = 0.35  # |bend drive| below this is straight road
KIND_CHANGES = -1.88  # a die below this (3 of 100) changes the kind of what stands beside the road
OFFERED = 1.28  # a die above this (1 of 10) offers an object


@dataclass(slots=True)
class Luck:
    """Dice of B sessions and what the simulator carries from frame to frame."""

    rng: np.random.Generator
    drive_B: NDArray[np.float64]
    kind_B2: NDArray[np.int64]

    def draw(self) -> tuple[Array, Array]:
        """Dice [B, 5] of the next frame and the innovations [B, 5] they mean to the simulator."""
        dice = self.rng.standard_normal((len(self.drive_B), DICE))
        return dice.astype(np.float32), self.meant(dice)

    def meant(self, dice: NDArray[np.floating]) -> Array:
        """The innovations [B, 5] of these dice; what is carried goes on."""
        self.drive_B = BEND_MEMORY * self.drive_B + math.sqrt(1 - BEND_MEMORY**2) * dice[:, 0]
        self.kind_B2 = np.where(dice[:, 1:3] < KIND_CHANGES, -self.kind_B2, self.kind_B2)
        offered = dice[:, 3:5] > OFFERED
        bend = np.sign(self.drive_B) * np.tanh(np.maximum(np.abs(self.drive_B) - STRAIGHT, 0))
        kinds = np.where(offered, self.kind_B2, 0)
        rows = np.stack([bend, offered[:, 0], kinds[:, 0], offered[:, 1], kinds[:, 1]], 1)
        return rows.astype(np.float32)

    def hidden(self) -> Array:
        """What is carried [B, 3]."""
        return np.concatenate([self.drive_B[:, None], self.kind_B2], 1).astype(np.float32)


def new_luck(rng: np.random.Generator, sessions: int) -> Luck:
    return Luck(rng, rng.standard_normal(sessions), rng.choice((-1, 1), (sessions, 2)))
