"""Colours of the 60 themes (4 times of day x 5 biomes x 3 weathers) as arrays indexed by theme number.

Weather shows in palette, haze and wet reflections; nothing falls through the air, because the
autoencoder could not carry it. Knows nothing of geometry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....models.shared.road.look import BIOMES, THEMES, TIMES, theme_of

Array = NDArray[np.float32]
HORIZON = 32  # rows of sky
RAIN, FOG = 1, 2
NIGHT_OR_DUSK = (TIMES.index("night"), TIMES.index("dusk"))
CITY, COAST = BIOMES.index("city"), BIOMES.index("coast")


def colour(code: str) -> Array:
    """'rrggbb' to three floats in [0, 1]."""
    return np.array([int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)], np.float32)


@dataclass(frozen=True, slots=True)
class _Time:
    top: str
    mid: str
    low: str
    light: str
    sun: str
    sun_row: float
    stars: float
    headlight: float


@dataclass(frozen=True, slots=True)
class _Biome:
    ground_a: str
    ground_b: str
    road: str
    rumble_a: str
    rumble_b: str
    far: str
    near: str


_TIMES = (
    _Time("5b6fb5", "e79fb0", "ffd9a0", "f0d0c8", "fff0c0", 20, 0.0, 0.05),
    _Time("2f78d8", "6db4f0", "cdeafc", "ffffff", "fffbe0", 8, 0.0, 0.0),
    _Time("2c1a5e", "b23a7a", "ff8a3c", "d99a90", "ffd24a", 21, 0.15, 0.12),
    _Time("050818", "0b1436", "1c2c5c", "48507e", "e8ecff", 9, 0.9, 0.75),
)
_BIOMES = (
    _Biome("d9a860", "c99450", "6d6468", "c8452e", "f4ead8", "b06a48", "c98a50"),
    _Biome("3f8f3a", "347f32", "5a5d62", "d03a30", "f2f2f2", "5b8a8a", "2b6434"),
    _Biome("eef4fa", "d8e4f0", "7a828c", "3a6fc8", "ffffff", "a8bcd8", "dfe9f4"),
    _Biome("2c2a44", "38345a", "34343f", "ff2fa0", "20e0ff", "3a3760", "24223e"),
    _Biome("ecd9a0", "e2cb8c", "5f6468", "f08a2c", "fff8e8", "6a9ab0", "3f9a6a"),
)


@dataclass(frozen=True, slots=True)
class Palette:
    """T = 60 themes, R = rows of sky, C = rgb. Every field is indexed by theme number first."""

    sky_TRC: Array
    horizon_TC: Array  # sky colour at the horizon, reflected by wet roads
    light_TC: Array  # what daylight multiplies every surface with
    haze_TC: Array
    haze_per_m_T: Array
    sun_TC: Array
    sun_row_T: Array
    sun_radius_T: Array
    sun_strength_T: Array
    stars_T: Array
    headlight_T: Array
    wet_T: Array
    neon_T: Array  # 1 in the city: glowing grid and windows
    sea_T: Array  # 1 at the coast: water on the left
    ground_a_TC: Array
    ground_b_TC: Array
    road_TC: Array
    rumble_a_TC: Array
    rumble_b_TC: Array
    far_TC: Array
    near_TC: Array
    biome_T: NDArray[np.int64]


def _overcast(c: Array) -> Array:
    return np.asarray((c * 0.4 + 0.6 * c.mean()) * 0.74, np.float32)


@dataclass(slots=True)
class _Air:
    """Sky and light of one theme while the weather is being applied to it."""

    top: Array
    mid: Array
    low: Array
    light: Array
    haze: Array
    haze_per_m: float = 0.004
    stars: float = 1.0
    sun: float = 1.0
    wet: float = 0.0


def _air(number: int) -> _Air:
    time, biome, weather = theme_of(number)
    t = _TIMES[time]
    top, mid, low, light = (colour(code) for code in (t.top, t.mid, t.low, t.light))
    if biome == CITY and time in NIGHT_OR_DUSK:
        low, mid = low * 0.5 + colour("a02a9a") * 0.5, mid * 0.7 + colour("5a1a80") * 0.3
    if weather == RAIN:
        top, mid, low = _overcast(top), _overcast(mid), _overcast(low)
        return _Air(top, mid, low, light * 0.78, low, 0.011, 0.0, 0.12, 1.0)
    if weather == FOG:
        fog = np.asarray((0.55 * low + 0.45 * low.mean()) * 0.95 + 0.03, np.float32)
        return _Air(top * 0.35 + fog * 0.65, mid * 0.2 + fog * 0.8, fog, light, fog, 0.034, 0.1, 0.4)
    return _Air(top, mid, low, light, low)


def _sky(air: _Air) -> Array:
    u = np.linspace(0, 1, HORIZON, dtype=np.float32)[:, None]
    upper, lower = np.clip(u / 0.55, 0, 1), np.clip((u - 0.55) / 0.45, 0, 1)
    sky = air.top * (1 - upper) + air.mid * upper
    return np.asarray(sky * (1 - lower) + air.low * lower, np.float32)


def _table(values: Iterable[Array | float | bool]) -> Array:
    return np.asarray(list(values), np.float32)


def _palette() -> Palette:
    numbers = range(THEMES)
    themes = [theme_of(n) for n in numbers]
    airs = [_air(n) for n in numbers]
    times = [_TIMES[t.time] for t in themes]
    biomes = [_BIOMES[t.biome] for t in themes]
    return Palette(
        sky_TRC=_table(_sky(a) for a in airs),
        horizon_TC=_table(a.low for a in airs),
        light_TC=_table(a.light for a in airs),
        haze_TC=_table(a.haze for a in airs),
        haze_per_m_T=_table(a.haze_per_m for a in airs),
        sun_TC=_table(colour(t.sun) for t in times),
        sun_row_T=_table(t.sun_row for t in times),
        sun_radius_T=_table(5.5 if t.stars > 0.5 else 8.0 for t in times),
        sun_strength_T=_table(a.sun for a in airs),
        stars_T=_table(t.stars * a.stars for t, a in zip(times, airs, strict=True)),
        headlight_T=_table(t.headlight for t in times),
        wet_T=_table(a.wet for a in airs),
        neon_T=_table(t.biome == CITY for t in themes),
        sea_T=_table(t.biome == COAST for t in themes),
        ground_a_TC=_table(colour(b.ground_a) for b in biomes),
        ground_b_TC=_table(colour(b.ground_b) for b in biomes),
        road_TC=_table(colour(b.road) for b in biomes),
        rumble_a_TC=_table(colour(b.rumble_a) for b in biomes),
        rumble_b_TC=_table(colour(b.rumble_b) for b in biomes),
        far_TC=_table(colour(b.far) for b in biomes),
        near_TC=_table(colour(b.near) for b in biomes),
        biome_T=np.array([t.biome for t in themes], np.int64),
    )


PALETTE = _palette()
