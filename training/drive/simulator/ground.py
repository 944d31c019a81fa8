"""Everything below the horizon that is painted on the ground: fields, sea, road, lanes, light and haze.

Shapes: N frames, R = 48 rows of ground, W columns, C rgb. Nothing here stands up; see sprites.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .palette import PALETTE, colour
from .road import CAMERA, DEPTH_R, FOCAL, HALF_ROAD, WIDTH

Array = NDArray[np.float32]
RUMBLE = 0.7  # metres of kerb beside the road
LANES = (-1.17, 1.17)
COLUMN_W: Array = np.arange(WIDTH, dtype=np.float32)
PER_METRE_R1: Array = (FOCAL / DEPTH_R)[:, None].astype(np.float32)
_GLOW_RW: Array = (np.exp(-(((DEPTH_R - 9) / 9) ** 2))[:, None] * np.exp(-(((COLUMN_W - 64) / 34) ** 2))[None]).astype(
    np.float32
)
_SHARE_R: Array = np.clip(1.25 - DEPTH_R**2 / (CAMERA * FOCAL) / 3.2, 0, 1).astype(np.float32)  # fades far stripes
_NEAR_R1: Array = np.linspace(1, 0.25, len(DEPTH_R), dtype=np.float32)[:, None]


def _stripes(metres_NR: NDArray[np.float64], period: float, sharp: float, shift: float = 0.0) -> Array:
    """A square-ish wave along the road in [-1, 1], faded out where a row covers more than a stripe."""
    wave = np.clip(np.sin((metres_NR % period) * (2 * np.pi / period) + shift) * sharp, -1, 1)
    return np.asarray(wave * _SHARE_R, np.float32)


def ground(
    theme_N: NDArray[np.int64], centre_NR: Array, distance_N: NDArray[np.float64], road_share_N: Array | None
) -> Array:
    """The ground rows [N, R, W, C], lit, before haze; `centre_NR` is the road's middle in metres.

    `road_share_N` fades the road away (0 = none); None draws it as it is.
    """
    metres_NR = distance_N[:, None] + DEPTH_R[None]
    across_NRW = (COLUMN_W - 64) / PER_METRE_R1 - centre_NR[..., None]  # metres from the road's middle
    fields = _fields(theme_N, metres_NR, across_NRW)
    paint = _road(fields, theme_N, metres_NR, across_NRW)
    if road_share_N is not None:
        share = road_share_N[:, None, None, None]
        paint = paint * share + fields * (1 - share)
    light = PALETTE.light_TC[theme_N][:, None, None]
    lamp = PALETTE.headlight_T[theme_N][:, None, None] * _GLOW_RW
    neon = PALETTE.neon_T[theme_N] * 0.45 * (1 - PALETTE.light_TC[theme_N].mean(1))
    paint *= light + lamp[..., None] * np.array([1, 0.95, 0.75], np.float32) + neon[:, None, None, None]
    wet = PALETTE.wet_T[theme_N]
    if wet.any():
        shine = _inside(across_NRW, HALF_ROAD) * wet[:, None, None] * _NEAR_R1
        if road_share_N is not None:
            shine = shine * road_share_N[:, None, None]
        paint += 0.26 * shine[..., None] * PALETTE.horizon_TC[theme_N][:, None, None]
    return paint


def haze(paint_NRWC: Array, theme_N: NDArray[np.int64]) -> Array:
    """Distance swallowed by the air."""
    share = 1 - np.exp(-PALETTE.haze_per_m_T[theme_N][:, None] * DEPTH_R[None])
    share = share[..., None, None]
    return np.asarray(paint_NRWC * (1 - share) + PALETTE.haze_TC[theme_N][:, None, None] * share, np.float32)


def _inside(across_NRW: Array, half: float) -> Array:
    """Anti-aliased coverage of |across| < half."""
    return np.clip((half - np.abs(across_NRW)) * PER_METRE_R1 + 0.5, 0, 1)


def _mix(under: Array, over: Array, cover_NRW: Array) -> Array:
    cover = cover_NRW[..., None]
    return np.asarray(under * (1 - cover) + over * cover, np.float32)


def _fields(theme_N: NDArray[np.int64], metres_NR: NDArray[np.float64], across_NRW: Array) -> Array:
    band = (_stripes(metres_NR, 9, 3) * 0.5 + 0.5)[..., None, None]
    a, b = PALETTE.ground_a_TC[theme_N][:, None, None], PALETTE.ground_b_TC[theme_N][:, None, None]
    paint = np.broadcast_to(a * (1 - band) + b * band, (*across_NRW.shape, 3)).astype(np.float32)
    city = np.flatnonzero(PALETTE.neon_T[theme_N])
    if len(city):
        lines = np.clip(np.cos((metres_NR[city] % 4.5) * (2 * np.pi / 4.5)) * 4 - 3, 0, 1) * _SHARE_R
        rays = np.clip(1 - np.abs((across_NRW[city] / 4) % 1 - 0.5) * 8 * (PER_METRE_R1 / 6).clip(0.3, 2), 0, 1) * 0.6
        bright = np.clip(1.25 - PALETTE.light_TC[theme_N[city]].mean(1), 0.1, 0.8)[:, None, None]
        cover = np.maximum(lines[..., None].astype(np.float32), rays) * bright
        paint[city] = _mix(paint[city], colour("e03ad0"), cover)
    coast = np.flatnonzero(PALETTE.sea_T[theme_N])
    if len(coast):
        shore = np.asarray((-across_NRW[coast] - 9) * PER_METRE_R1, np.float32)  # pixels left of the water's edge
        foam = np.asarray(np.clip(1 - np.abs(shore) / 3, 0, 1) * 0.5, np.float32)
        waves = _stripes(metres_NR[coast], 5.7, 1)[..., None, None]
        sea = np.asarray(colour("2f9fc0") + 0.05 * waves, np.float32)
        wet = np.asarray(np.clip(shore / 2 + 0.5, 0, 1), np.float32)
        paint[coast] = _mix(paint[coast], sea, wet)
        paint[coast] = _mix(paint[coast], colour("ffffff"), foam)
    return paint


def _road(paint: Array, theme_N: NDArray[np.int64], metres_NR: NDArray[np.float64], across_NRW: Array) -> Array:
    kerb = (_stripes(metres_NR, 4.5, 4) * 0.5 + 0.5)[..., None, None]
    a, b = PALETTE.rumble_a_TC[theme_N][:, None, None], PALETTE.rumble_b_TC[theme_N][:, None, None]
    paint = _mix(paint, a * (1 - kerb) + b * kerb, _inside(across_NRW, HALF_ROAD + RUMBLE))
    band = (_stripes(metres_NR, 9, 3) * 0.5 + 0.5)[..., None, None]
    asphalt = PALETTE.road_TC[theme_N][:, None, None] * (1.05 - 0.12 * band)
    asphalt *= 1 - 0.3 * PALETTE.wet_T[theme_N][:, None, None, None]
    paint = _mix(paint, asphalt, _inside(across_NRW, HALF_ROAD))
    dash = np.clip(np.sin((metres_NR % 9) * (2 * np.pi / 9) + 1) * 4 + 0.5, 0, 1) * _SHARE_R
    thin = np.minimum(1, 0.26 * PER_METRE_R1 + 0.25)
    for lane in LANES:
        cover = _inside(across_NRW - np.float32(lane), 0.15) * thin * dash[..., None].astype(np.float32)
        paint = _mix(paint, np.array([0.95, 0.95, 0.85], np.float32), cover * 0.88)
    return paint
