"""What a world is worth and when it is over is the trainer's to say: the worlds themselves know no goal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Action = Mapping[str, npt.NDArray[np.generic] | int | float]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one world. `frames`: all frames of its chunk [F, H, W, 3]; `before`: the picture in front of them."""

    before: npt.NDArray[np.uint8]
    action: Action
    frames: npt.NDArray[np.uint8]


Reward = Callable[[Step], float]
Over = Callable[[Step], bool]


def nothing(step: Step) -> float:
    return 0.0


def never(step: Step) -> bool:
    return False
