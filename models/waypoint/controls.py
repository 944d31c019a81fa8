"""Controls and pointer to Waypoint's control vector: 256 buttons by key code, mouse motion, the sign of the scroll."""

import numpy as np
from numpy.typing import NDArray

from .card import KEYS
from .spec import BUTTONS


def control_vector(controls: tuple[float, ...], pointer: tuple[float, float]) -> NDArray[np.float32]:
    """[buttons (0 or 1), dx, dy, scroll] of one frame; the pointer in picture widths, as it came."""
    vector = np.zeros(BUTTONS + 3, np.float32)
    for value, (_, code) in zip(controls, KEYS, strict=True):
        if code >= 0:
            vector[code] = 1.0 if value > 0 else 0.0
        elif value > 0:
            vector[-1] += 1.0 if code == -1 else -1.0
    vector[BUTTONS : BUTTONS + 2] = pointer
    return vector
