"""The memory of a frame: what a few pixels cannot hold exactly, dreamed along with the picture as three more tokens.

    token 40 (car)        [ speed 2 | offset | heading | lean | brake | stripes 4 | skyline 6 | bends ahead 16 ]
    token 41, 42 (sides)  objects beside the road, left and right: 32 places ahead, +-MARK by kind, 0 where none stands

In training they come from the simulator; in a dream `recall.py` moves them on: learned dynamics, no simulator at run
time. `seen` projects them through the camera onto the picture's tokens, which tells
each token where road edges and objects are; a blurred picture cannot lose them. Knows no keys and no time.

Legend: .. leading axes, N = 40 picture tokens, G ground rows sampled, P places, V view channels.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

MEMORY_TOKENS, PICTURE_TOKENS, CHANNELS = 3, 40, 32
TOKEN_ROWS, TOKEN_COLUMNS, TOKEN_PIXELS = 5, 8, 16
HORIZON, FOCAL, CAMERA, HALF_ROAD = 32, 70.0, 2.2, 3.5  # the camera that every picture was taken with
STRIPE = 9.0  # metres from one lane mark to the next
MARK = 2.0  # what stands for an object
OFFSET_UNIT, HEADING_UNIT, BEND_UNIT, STRIPE_UNIT = 2.0, 1 / 6, 0.012 / 1.6, 1 / 1.4
SPEED_MIDDLE, SPEED_UNIT = 14.0, 7.0
SPEED, OFFSET, HEADING, STRIPES, BENDS = 0, 2, 3, slice(6, 10), slice(16, 32)  # channels of the car's token
BEND_METRES = (0, 2, 4, 7, 10, 13, 17, 21, 25, 29, 33, 38, 43, 48, 53, 58)
PLACE_METRES = tuple(1.0 + 47.0 * (i / (CHANNELS - 1)) ** 1.5 for i in range(CHANNELS))
_BESIDE, _TALL, _WIDE = HALF_ROAD + 4.2, 7.0, 4.5  # metres: a roadside object, about
_ROWS_PER_TOKEN = 4
SPEED_BAR = (3.0, 4 / 3)  # pixels from the left, pixels for each m/s
PANORAMA = 192  # columns of the skyline until it repeats
SKYLINE = slice(10, 16)
VIEW = 5 * _ROWS_PER_TOKEN + 4 + 9  # per sampled row two edges, middle, two phases; objects; speed bar, skyline


def _bend_to_side(depths: Tensor) -> Tensor:
    """Matrix [depth, 16] from curvature at BEND_METRES to lateral displacement at `depths` (double integral)."""
    metres = torch.arange(0, 121, dtype=torch.float64)
    known = torch.tensor(BEND_METRES, dtype=torch.float64)
    upper = torch.searchsorted(known, metres).clamp(1, len(known) - 1)
    share = ((metres - known[upper - 1]) / (known[upper] - known[upper - 1])).clamp(0, 1)
    spread = torch.zeros(len(metres), len(known), dtype=torch.float64)
    spread[torch.arange(len(metres)), upper - 1] += 1 - share
    spread[torch.arange(len(metres)), upper] += share
    side = (torch.cumsum(torch.cumsum(spread, 0), 0) - 0.5 * torch.cumsum(spread, 0)).roll(1, 0)
    side[0] = 0
    at = depths.double().clamp(max=119)
    low = at.floor().long()
    part = (at - low)[:, None]
    return (side[low] * (1 - part) + side[low + 1] * part).float()


_STEP = TOKEN_PIXELS // _ROWS_PER_TOKEN
_GROUND_ROWS = torch.arange(HORIZON + _STEP // 2, TOKEN_ROWS * TOKEN_PIXELS, _STEP)  # 12 rows, 4 in each token row
_DEPTH_G = CAMERA * FOCAL / (_GROUND_ROWS - HORIZON + 0.6)
_PLACE_P = torch.tensor(PLACE_METRES)
_SIDE_OF_BEND_GB, _SIDE_OF_BEND_PB = _bend_to_side(_DEPTH_G), _bend_to_side(_PLACE_P)
_COLUMN = (torch.arange(TOKEN_COLUMNS) + 0.5) * TOKEN_PIXELS
_ROW = (torch.arange(TOKEN_ROWS) + 0.5) * TOKEN_PIXELS


def seen(memory_M: Tensor) -> Tensor:
    """Memory tokens [.., 3, 32] to what each picture token sees of them [.., 40, VIEW]."""
    car = memory_M[..., 0, :]
    offset, heading = car[..., OFFSET, None] * OFFSET_UNIT, car[..., HEADING, None] * HEADING_UNIT
    bends = car[..., BENDS] * BEND_UNIT
    road = _road_seen(bends, offset, heading, car[..., STRIPES])  # [.., 5, 8, 5 * rows]
    objects = _objects_seen(memory_M[..., 1:, :], bends, offset, heading)  # [.., 5, 8, 4]
    still = torch.cat([_speed_seen(car[..., SPEED]), _skyline_seen(car[..., SKYLINE], heading)], -1)  # [.., 5, 8, 9]
    return torch.cat([road, objects, still], -1).flatten(-3, -2)


def _speed_seen(speed: Tensor) -> Tensor:
    """How far the speed bar fills each token of the lowest row."""
    left, per_speed = SPEED_BAR
    edge = left + per_speed * (SPEED_MIDDLE + SPEED_UNIT * speed[..., None])
    filled_C = ((edge - (_COLUMN.to(speed) - TOKEN_PIXELS / 2)) / TOKEN_PIXELS).clamp(0, 1)
    above = filled_C.new_zeros(*filled_C.shape[:-1], TOKEN_ROWS - 1, TOKEN_COLUMNS)
    return torch.cat([above, filled_C[..., None, :]], -2)[..., None]


def _skyline_seen(skyline: Tensor, heading: Tensor) -> Tensor:
    """Where in the panorama each token of the two rows of sky looks, as waves; last for the near layer."""
    pairs = skyline.reshape(*skyline.shape[:-1], 3, 2) * STRIPE_UNIT
    turned, column_C = heading * FOCAL, _COLUMN.to(skyline)
    waves = []
    for pair, times, scale in ((0, 1, 1), (1, 2, 2), (2, 4, 4), (1, 2, 1)):
        angle_C = 2 * math.pi / PANORAMA * (times * turned + scale * column_C)
        sine, cosine = pairs[..., pair, 0, None], pairs[..., pair, 1, None]
        waves += [sine * angle_C.cos() + cosine * angle_C.sin(), cosine * angle_C.cos() - sine * angle_C.sin()]
    row = torch.stack(waves, -1)[..., None, :, :]  # [.., 1, 8, 8]
    below = row.new_zeros(*row.shape[:-3], TOKEN_ROWS - 2, *row.shape[-2:])
    return torch.cat([row, row, below], -3)


def _road_seen(bends: Tensor, offset: Tensor, heading: Tensor, stripes: Tensor) -> Tensor:
    """Where the road's edges and middle lie from each token, in token widths, squashed; and the stripes' phase."""
    across_G = bends @ _SIDE_OF_BEND_GB.to(bends).T - offset - heading * _DEPTH_G.to(bends)
    per_metre_G = (FOCAL / _DEPTH_G).to(bends)
    middle_G = TOKEN_COLUMNS * TOKEN_PIXELS / 2 + across_G * per_metre_G
    from_middle_GC = (_COLUMN.to(bends) - middle_G[..., None]) / TOKEN_PIXELS
    half_G1 = (HALF_ROAD * per_metre_G / TOKEN_PIXELS)[:, None]
    lines = torch.stack([from_middle_GC + half_G1, from_middle_GC - half_G1, from_middle_GC], -1).tanh()
    turn_G = 2 * math.pi * _DEPTH_G.to(bends) / STRIPE
    sine, cosine = stripes[..., 0, None] * STRIPE_UNIT, stripes[..., 1, None] * STRIPE_UNIT
    phase_G = torch.stack(
        [sine * turn_G.cos() + cosine * turn_G.sin(), cosine * turn_G.cos() - sine * turn_G.sin()], -1
    )
    phase = phase_G[..., None, :].expand(*phase_G.shape[:-1], TOKEN_COLUMNS, 2)
    rows = torch.cat([lines, phase], -1)  # [.., 12, 8, 5]
    by_token = rows.reshape(*rows.shape[:-3], TOKEN_ROWS - 2, _ROWS_PER_TOKEN, *rows.shape[-2:])
    ground = by_token.transpose(-3, -2).flatten(-2)  # [.., 3, 8, 20]
    sky = ground.new_zeros(*ground.shape[:-3], 2, *ground.shape[-2:])
    return torch.cat([sky, ground], -3)


def _objects_seen(sides_SP: Tensor, bends: Tensor, offset: Tensor, heading: Tensor) -> Tensor:
    """How much of each kind stands in each token: [left -1, left +1, right -1, right +1], softly drawn boxes."""
    across_P = bends @ _SIDE_OF_BEND_PB.to(bends).T - offset - heading * _PLACE_P.to(bends)
    per_metre_P = (FOCAL / _PLACE_P).to(bends)
    foot_P = HORIZON + CAMERA * per_metre_P
    centre_P, half_P = foot_P - _TALL / 2 * per_metre_P, _TALL / 2 * per_metre_P
    inside_RP = ((half_P + 4 - (_ROW.to(bends)[:, None] - centre_P).abs()) / 3).sigmoid()
    kinds = []
    for side, sign in ((0, -1.0), (1, 1.0)):
        column_P = TOKEN_COLUMNS * TOKEN_PIXELS / 2 + (across_P + sign * _BESIDE) * per_metre_P
        wide_P = _WIDE / 2 * per_metre_P
        gap_CP = (_COLUMN.to(bends)[:, None] - column_P[..., None, :]).abs()
        inside_CP = ((wide_P + 4 - gap_CP) / 3).sigmoid()
        marks_P = sides_SP[..., side, :] / (2 * MARK)
        for kind in (-1.0, 1.0):
            drawn_CP = inside_CP * (marks_P * kind).clamp_min(0)[..., None, :]
            kinds.append(drawn_CP @ inside_RP.T)  # [.., C, R]
    return torch.stack(kinds, -1).transpose(-3, -2)
