"""Controls and pointer to the action vectors Matrix-Game was trained with: one keyboard and one mouse vector a frame.

universal   keys [forward, back, left, right]            mouse [pitch, yaw], up and right positive, at most 0.1
gta         keys [gas, brake]                            mouse [0, yaw] from the steering keys
temple_run  keys [idle, jump, slide, turn left, turn right, left, right], one of them 1
"""

import numpy as np
from numpy.typing import NDArray

from .spec import Mode

TURN = 0.1  # a held look key; the pointer gives at most as much
Vector = NDArray[np.float32]


def action(mode: Mode, controls: tuple[float, ...], pointer: tuple[float, float]) -> tuple[Vector, Vector]:
    """(keyboard, mouse) of every frame of a chunk; mouse is empty where the mode has none."""
    match mode:
        case Mode.UNIVERSAL:
            forward, back, left, right, up, down, west, east = controls
            pitch = _turn(TURN * (up - down) - pointer[1])
            yaw = _turn(TURN * (east - west) + pointer[0])
            return _vector(forward, back, left, right), _vector(pitch, yaw)
        case Mode.GTA:
            gas, brake, left, right = controls
            return _vector(gas, brake), _vector(0.0, _turn(TURN * (right - left) + pointer[0]))
        case Mode.TEMPLE_RUN:
            return _one_of(controls), _vector()


def _one_of(controls: tuple[float, ...]) -> Vector:
    """Exactly one move: the strongest key, the first one of equals, or idle."""
    moves = np.zeros(7, np.float32)
    strongest = max(range(len(controls)), key=lambda i: controls[i])
    moves[strongest + 1 if controls[strongest] > 0 else 0] = 1.0
    return moves


def _turn(value: float) -> float:
    return min(max(value, -TURN), TURN)


def _vector(*values: float) -> Vector:
    return np.array(values, np.float32)
