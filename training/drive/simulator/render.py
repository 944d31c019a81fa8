"""A world becomes a picture: sky, skyline, ground, objects, car and the speed bar, 128x80 RGB.

Deterministic in the world's state. A running cross-fade is the linear mix of the two themes' pictures.
Shapes: N frames, H rows, W columns, C rgb in [0, 1] until the very end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .ground import COLUMN_W, ground, haze
from .palette import HORIZON, PALETTE
from .panorama import PERIOD, PROFILES, STARS, SUN_COLUMN, WINDOW_TINT, WINDOWS, scroll
from .road import (
    CAMERA,
    DEPTH_R,
    FOCAL,
    HALF_ROAD,
    HEIGHT,
    METRE_DISPLACEMENT,
    OBJECT_ENTRY,
    ROW_DISPLACEMENT,
    WIDTH,
    road_centre,
)
from .sprites import CAR, CAR_WIDTH, DRAWINGS, LEANS, Patch, object_patch
from .world import TOP_SPEED, World

Array = NDArray[np.float32]
NEAREST = 2.0  # metres: objects closer than this have passed
BAR_LEFT, BAR_WIDTH, BAR_TOP = 3, 40, HEIGHT - 5
_ROW_H1: Array = np.arange(HORIZON, dtype=np.float32)[:, None]
_METRES: Array = np.arange(OBJECT_ENTRY + 3, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the drawing functions need of N sessions, without themes."""

    turned_N: NDArray[np.float64]  # skyline columns
    centre_NR: Array  # road's middle per ground row, metres
    centre_NM: Array  # the same per whole metre ahead, for objects
    world: World
    road_share_B: Array | None


def render(world: World, road_share_B: Array | None = None) -> NDArray[np.uint8]:
    """Pictures of all sessions [B, 80, 128, 3]; `road_share_B` fades roads away, for pictures that lack one."""
    curvature = world.curvature()
    scene = _Scene(
        (world.yaw_B + world.heading_B) * FOCAL,
        road_centre(ROW_DISPLACEMENT, curvature, world.offset_B, world.heading_B, DEPTH_R),
        road_centre(METRE_DISPLACEMENT, curvature, world.offset_B, world.heading_B, _METRES),
        world,
        road_share_B,
    )
    picture = _draw(scene, np.arange(len(world.fade_B)), world.theme_B)
    fading = np.flatnonzero(world.fade_B < 1)
    if len(fading):
        share = world.fade_B[fading][:, None, None, None]
        picture[fading] = picture[fading] * share + _draw(scene, fading, world.theme_before_B[fading]) * (1 - share)
    return (np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8)


def _draw(scene: _Scene, who_N: NDArray[np.int64], theme_N: NDArray[np.int64]) -> Array:
    picture = np.empty((len(who_N), HEIGHT, WIDTH, 3), np.float32)
    picture[:, :HORIZON] = _sky(scene.turned_N[who_N], theme_N)
    share = None if scene.road_share_B is None else scene.road_share_B[who_N]
    paint = ground(theme_N, scene.centre_NR[who_N], scene.world.distance_B[who_N], share)
    picture[:, HORIZON:] = haze(paint, theme_N)
    for frame, who, theme in zip(picture, who_N, theme_N, strict=True):
        _objects(frame, scene, int(who), int(theme))
        _car(frame, scene.world, int(who), int(theme))
        _speed_bar(frame, float(scene.world.speed_B[who]))
    return picture


def _sky(turned_N: NDArray[np.float64], theme_N: NDArray[np.int64]) -> Array:
    column_NW = turned_N[:, None] + COLUMN_W[None]
    sky = np.repeat(PALETTE.sky_TRC[theme_N][:, :, None], WIDTH, 2)
    stars = scroll(STARS, column_NW).transpose(1, 0, 2) * PALETTE.stars_T[theme_N][:, None, None]
    sky += stars[..., None]
    sun_column = (SUN_COLUMN - turned_N + PERIOD / 4) % PERIOD - PERIOD / 4
    across = COLUMN_W[None, None] - sun_column.astype(np.float32)[:, None, None]
    away = np.sqrt(across**2 + (_ROW_H1 - PALETTE.sun_row_T[theme_N][:, None, None]) ** 2)
    disc = np.clip(PALETTE.sun_radius_T[theme_N][:, None, None] - away + 0.5, 0, 1)
    cover = (disc + np.exp(-away / 14) * 0.45) * PALETTE.sun_strength_T[theme_N][:, None, None]
    cover = np.clip(cover, 0, 1)[..., None]
    sky = sky * (1 - cover) + PALETTE.sun_TC[theme_N][:, None, None] * cover
    for layer, parallax, depth, base in ((0, 1.0, 45, PALETTE.far_TC), (1, 2.0, 25, PALETTE.near_TC)):
        sky = _silhouette(sky, turned_N, theme_N, layer, parallax, depth, base)
    return np.asarray(sky, np.float32)


def _silhouette(
    sky: Array,
    turned_N: NDArray[np.float64],
    theme_N: NDArray[np.int64],
    layer: int,
    parallax: float,
    depth: int,
    base_TC: Array,
) -> Array:
    """One row of hills or houses. Parallax is whole, so that both layers repeat together."""
    column_NW = turned_N[:, None] * parallax + COLUMN_W[None]
    tables = PROFILES[PALETTE.biome_T[theme_N], layer]
    height = np.stack([scroll(table, column) for table, column in zip(tables, column_NW, strict=True)])
    cover = np.clip(height[:, None] - (HORIZON - _ROW_H1[None]) + 1, 0, 1)[..., None]
    air = 1 - np.exp(-PALETTE.haze_per_m_T[theme_N] * depth)[:, None, None, None]
    body = (base_TC[theme_N] * PALETTE.light_TC[theme_N])[:, None, None] * (1 - air)
    body = body + PALETTE.haze_TC[theme_N][:, None, None] * air
    city = np.flatnonzero(PALETTE.neon_T[theme_N])
    if len(city):
        body = np.broadcast_to(body, sky.shape).copy()
        nearest = np.floor(column_NW[city]).astype(np.int64) % PERIOD
        lit = WINDOWS[:, nearest].transpose(1, 0, 2)[:, ::-1]
        dark = np.clip(1.3 - PALETTE.light_TC[theme_N[city]].mean(1), 0.15, 1)[:, None, None]
        lit = (lit * (0.6 if layer == 0 else 0.85) * dark * (1 - air[city, :, :, 0]))[..., None]
        body[city] = body[city] * (1 - lit) + WINDOW_TINT[nearest][:, None] * lit
    return np.asarray(sky * (1 - cover) + body * cover, np.float32)


def _objects(frame: Array, scene: _Scene, who: int, theme: int) -> None:
    """Roadside objects, far ones first."""
    world = scene.world
    ahead_SO = world.object_BSO[who] - world.distance_B[who]
    sides, places = np.nonzero((ahead_SO > NEAREST) & (ahead_SO < OBJECT_ENTRY + 0.01))
    for i in np.argsort(-ahead_SO[sides, places]):
        side, depth = int(sides[i]), float(ahead_SO[sides[i], places[i]])
        kind = int(world.kind_BSO[who, side, places[i]] > 0)
        drawing = DRAWINGS[int(PALETTE.biome_T[theme])][kind]
        middle = float(np.interp(depth, _METRES, scene.centre_NM[who]))
        middle += (-1 if side == 0 else 1) * (HALF_ROAD + drawing.beside)
        height = FOCAL * drawing.metres / depth
        width = height * drawing.picture.width / drawing.picture.height
        left = 64 + FOCAL * middle / depth - width / 2
        if left > WIDTH or left + width < 0:
            continue
        patch, column, row = _placed(int(PALETTE.biome_T[theme]), kind, height, left, HORIZON + CAMERA * FOCAL / depth)
        light = PALETTE.light_TC[theme] + PALETTE.headlight_T[theme] * 0.5 * np.exp(-(((depth - 8) / 10) ** 2))
        air = 1 - float(np.exp(-PALETTE.haze_per_m_T[theme] * depth))
        tint = (
            patch.colour * (light * (1 - patch.glow) + patch.glow) * (1 - air)
            + patch.cover * PALETTE.haze_TC[theme] * air
        )
        _paste(frame, tint, patch.cover, column, row, min(1.0, 0.5 + (OBJECT_ENTRY - depth) / 4))


def _placed(biome: int, kind: int, height: float, left: float, bottom: float) -> tuple[Patch, int, int]:
    """The patch for this size and place, and the whole pixel where its corner goes."""
    halves = max(2, round(height * 2)) if height < 16 else 2 * round(height)
    halves = min(halves, 260)
    fine = 4 if height < 40 else 1
    quarter_left = round(left * fine) * (4 // fine)
    half_top = round((bottom - halves / 2) * 2) if height < 40 else 2 * round(bottom - halves / 2)
    column, row = quarter_left // 4, half_top // 2
    return object_patch(biome, kind, halves, quarter_left - 4 * column, half_top - 2 * row), column, row


def _paste(frame: Array, colour: Array, cover: Array, column: int, row: int, share: float) -> None:
    """Blend a premultiplied patch into the frame, cut at its borders."""
    height, width = cover.shape[:2]
    top, bottom, left, right = max(row, 0), min(row + height, HEIGHT), max(column, 0), min(column + width, WIDTH)
    if top >= bottom or left >= right:
        return
    part = (slice(top - row, bottom - row), slice(left - column, right - column))
    under = frame[top:bottom, left:right]
    under *= 1 - cover[part] * share
    under += colour[part] * share


def _car(frame: Array, world: World, who: int, theme: int) -> None:
    picture = round((float(world.lean_B[who]) + 1) / 2 * (LEANS - 1))
    patch = CAR[picture][int(world.braking_B[who])]
    light = np.clip(PALETTE.light_TC[theme] * 0.85 + 0.2, 0, 1)
    tint = patch.colour * (light * (1 - patch.glow) + patch.glow)
    _paste(frame, tint, patch.cover, (WIDTH - CAR_WIDTH) // 2, HEIGHT - 22, 1.0)


def _speed_bar(frame: Array, speed: float) -> None:
    """Three rows at the lower left, anti-aliased: 1.33 pixels for each m/s."""
    bar = frame[BAR_TOP : BAR_TOP + 3, BAR_LEFT : BAR_LEFT + BAR_WIDTH]
    filled = np.clip(speed / TOP_SPEED * BAR_WIDTH - np.arange(BAR_WIDTH), 0, 1).astype(np.float32)[None, :, None]
    bar *= 0.3
    bar *= 1 - filled
    bar += filled * np.array([1, 0.8, 0.2], np.float32)
