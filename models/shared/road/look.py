"""The words of a look: time of day, biome and weather, and the 12-d vector that carries them to the model.

    look_L = [ dawn day dusk night | desert forest snow city coast | clear rain fog ]

A soft vector is a cross-fade: the picture is then the same linear mix of the two looks' pictures.
This file knows no text and no tensors; it is the one place where the order is written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..steps import mixed

TIMES = ("dawn", "day", "dusk", "night")
BIOMES = ("desert", "forest", "snow", "city", "coast")
WEATHERS = ("clear", "rain", "fog")
ATTRIBUTES = (TIMES, BIOMES, WEATHERS)
LOOK = len(TIMES) + len(BIOMES) + len(WEATHERS)
PROMPT_CHARS = 400
"""Code points that a prompt of a world of looks may have."""
THEMES = len(TIMES) * len(BIOMES) * len(WEATHERS)


class Theme(NamedTuple):
    """One of the 60 looks the simulator can draw, as indices into TIMES, BIOMES and WEATHERS."""

    time: int
    biome: int
    weather: int


def theme_of(number: int) -> Theme:
    """The theme with this number, 0 <= number < 60."""
    return Theme(number // 15, (number // 3) % 5, number % 3)


def number_of(theme: Theme) -> int:
    """Inverse of `theme_of`."""
    return (theme.time * len(BIOMES) + theme.biome) * len(WEATHERS) + theme.weather


def _table() -> NDArray[np.float32]:
    rows = np.zeros((THEMES, LOOK), np.float32)
    for number in range(THEMES):
        theme = theme_of(number)
        rows[number, theme.time] = 1.0
        rows[number, len(TIMES) + theme.biome] = 1.0
        rows[number, len(TIMES) + len(BIOMES) + theme.weather] = 1.0
    return rows


ONE_HOT: NDArray[np.float32] = _table()  # [60, 12]


def mix_looks(features: Sequence[tuple[object, float]]) -> NDArray[np.float32]:
    """The shares' looks, mixed as a cross-fade is; raises on what is not a look or not a whole mix."""
    total = sum(weight for _, weight in features)
    if abs(total - 1.0) > 1e-3:
        raise ValueError(f"the weights of {len(features)} prompts sum to {total:.4f}, they must sum to 1")
    return mixed(features, (LOOK,))
