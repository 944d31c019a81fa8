"""The camera: what each picture token sees of a frame's memory, which tells it what stands where in its 16 x 16 pixels.

    road       cells of 4 pixels: asphalt, kerb, kerb stripes, lane marks
               rows of 2 pixels: phases of the stripes, where the road's middle lies
    objects    cells of 4 pixels, per kind: inside, how far across, how far up, how near
    skyline    a learned panorama around the car, both layers, looked up every 2 pixels
    car        speed bar, lean, brake

The geometry is that of the camera which took every picture (training/drive/simulator/road.py). What things look like is
learned: the sizes of the objects of each biome, the panorama, and all that the transformer paints from these.

Knows no keys and no time.
Legend: .. leading axes, G = 24 ground rows, W = 32 columns of cells, R = 20 rows of cells, S sides, P places, K kinds,
J = 8 columns of tokens, V view channels.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...kernels.invariant_matmul import invariant_matmul
from ..shared.road.look import BIOMES, TIMES
from .memory import (
    BEND_METRES,
    BEND_UNIT,
    BENDS,
    CAMERA,
    FOCAL,
    HALF_ROAD,
    HEADING,
    HEADING_UNIT,
    HORIZON,
    LEAN,
    MARK,
    OFFSET,
    OFFSET_UNIT,
    PANORAMA,
    PLACE_METRES,
    SKYLINE,
    SPEED,
    SPEED_BAR,
    SPEED_MIDDLE,
    SPEED_UNIT,
    STRIPE,
    STRIPE_UNIT,
    STRIPES,
    TOKEN_COLUMNS,
    TOKEN_PIXELS,
    TOKEN_ROWS,
)

CELL, ROW, KNOT = 4, 2, 2  # pixels of an object's or road's cell, of a ground row, of a panorama entry
CELLS = TOKEN_PIXELS // CELL
ROWS = TOKEN_PIXELS // ROW
GROUND_TOKENS = TOKEN_ROWS - HORIZON // TOKEN_PIXELS  # token rows below the horizon
DEEP = 8  # channels of the panorama
KERB, LANE, LANE_HALF, DASH_SHIFT = 0.7, 1.17, 0.15, 1.0  # metres; radians
GUESS = (4.5, 7.0, 4.2)  # metres: an object's width, height, distance from the road's edge, before training
FAST, BRIGHT = 10.0, 4.0  # sizes and panorama are stored this much smaller, so that they learn faster
NEAR, FAR = 1.5, 49.0  # metres: where objects are drawn
PEAK = 1.85  # how far a bump's top lies from its highest sample, for each unit of its lean
VIEW = (4 * CELLS * ROWS + 7 * ROWS) + 8 * CELLS * CELLS + 1 + (2 * DEEP * TOKEN_PIXELS // KNOT + 12) + 2


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


def _waves_of(depth_G: Tensor) -> Tensor:
    """Matrix [4, 5 G] from the stripes' two waves at the car to both, and the dashes' wave, at each ground row."""
    turn_G = 2 * math.pi * depth_G / STRIPE
    blocks = torch.zeros(4, 5, len(depth_G))
    for wave in (0, 1):
        cosine, sine = ((wave + 1) * turn_G).cos(), ((wave + 1) * turn_G).sin()
        blocks[2 * wave, 2 * wave], blocks[2 * wave + 1, 2 * wave] = cosine, sine
        blocks[2 * wave, 2 * wave + 1], blocks[2 * wave + 1, 2 * wave + 1] = -sine, cosine
    blocks[:, 4] = blocks[:, 0] * math.cos(DASH_SHIFT) + blocks[:, 1] * math.sin(DASH_SHIFT)
    return blocks.flatten(1) * STRIPE_UNIT


_GROUND_G = torch.arange(HORIZON + ROW // 2, TOKEN_ROWS * TOKEN_PIXELS, ROW).float()
_DEPTH_G = CAMERA * FOCAL / (_GROUND_G - HORIZON + 0.6)
_PER_METRE_G = FOCAL / _DEPTH_G
_SIDE_BG, _WAVES = _bend_to_side(_DEPTH_G).T.contiguous(), _waves_of(_DEPTH_G)
_SIDE_BM = _bend_to_side(torch.arange(60.0)).T.contiguous()
_CELL_W = (torch.arange(TOKEN_COLUMNS * CELLS) + 0.5) * CELL - 0.5
_CELL_R = (torch.arange(TOKEN_ROWS * CELLS) + 0.5) * CELL - 0.5
_TOKEN_J = (torch.arange(TOKEN_COLUMNS) + 0.5) * TOKEN_PIXELS - 0.5
_KNOT_X = (torch.arange(TOKEN_COLUMNS * TOKEN_PIXELS // KNOT) + 0.5) * KNOT - 0.5
_MIDDLE = TOKEN_COLUMNS * TOKEN_PIXELS / 2
_ACROSS_GW = (_CELL_W - _MIDDLE) / _PER_METRE_G[:, None]
_ACROSS_GJ = (_TOKEN_J - _MIDDLE) / _PER_METRE_G[:, None]
_PER_CELL_G1 = (_PER_METRE_G / CELL)[:, None]
_THIN_G1 = 2 * LANE_HALF / (2 * LANE_HALF + 1 / _PER_CELL_G1)
_PLACE_P = torch.tensor(PLACE_METRES)
_SPREAD_P = torch.gradient(_PLACE_P)[0]
_SIDE_SIGN, _GUESS = torch.tensor([[-1.0], [1.0]]), torch.tensor(GUESS)
_PARALLAX = torch.tensor([1.0, 2.0])  # of the far and the near layer
_GRAIN = torch.tensor([2 * math.pi / period for period in (4, 8, 16)])


class Camera(nn.Module):
    """Memory tokens [.., 3, 32] and looks [.., L] to views [.., 40, VIEW]."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = nn.Parameter(torch.zeros(len(BIOMES), 2 * len(GUESS)))
        self.panorama = nn.Parameter(torch.randn(len(BIOMES), 2 * (PANORAMA // KNOT) * DEEP) * 0.1)

    def forward(self, memory_M: Tensor, look_L: Tensor) -> Tensor:
        car, biome = memory_M[..., 0, :], look_L[..., len(TIMES) : len(TIMES) + len(BIOMES)]
        bends, offset, heading = car[..., BENDS] * BEND_UNIT, car[..., OFFSET, None], car[..., HEADING, None]
        offset, heading = offset * OFFSET_UNIT, heading * HEADING_UNIT
        road = self._road(bends, offset, heading, car[..., STRIPES])
        objects = self._objects(memory_M[..., 1:, :], bends, offset, heading, biome)
        skyline = self._skyline(car[..., SKYLINE], heading, biome)
        still = car[..., None, None, LEAN].expand(*objects.shape[:-1], 2)
        return torch.cat([road, objects, _speed_bar(car[..., SPEED]), skyline, still], -1).flatten(-3, -2)

    def _road(self, bends: Tensor, offset: Tensor, heading: Tensor, stripes: Tensor) -> Tensor:
        """Cells of the road and rows of the ground [.., 5, 8, 4 * 32 + 56]; zero above the horizon."""
        middle_G = _each(bends, _SIDE_BG) - offset - heading * _DEPTH_G  # metres
        across_GW = (_ACROSS_GW - middle_G[..., None]).abs()
        road = ((HALF_ROAD - across_GW) * _PER_CELL_G1 + 0.5).clamp(0, 1)
        kerb = ((HALF_ROAD + KERB - across_GW) * _PER_CELL_G1 + 0.5).clamp(0, 1) - road
        lanes = ((LANE_HALF - (across_GW - LANE).abs()) * _PER_CELL_G1 + 0.5).clamp(0, 1) * _THIN_G1
        waves = torch.unflatten(_each(stripes, _WAVES), -1, (5, -1))  # [.., 5, G]
        striped_G1 = (waves[..., 2, :] * 4).clamp(-1, 1)[..., None]
        dashed_G1 = (waves[..., 4, :] * 4 + 0.5).clamp(0, 1)[..., None]
        cells = torch.stack([road, kerb, kerb * striped_G1, lanes * dashed_G1], -1)  # [.., G, W, 4]
        cells = _by_token(cells, GROUND_TOKENS, ROWS)
        bands = torch.cat([waves[..., :4, :], (waves[..., :1, :] * 3).clamp(-1, 1)], -2)  # [.., 5, G]
        bands = torch.unflatten(bands, -1, (GROUND_TOKENS, 1, ROWS)).movedim(-4, -1).flatten(-2)
        from_middle_GJ = _ACROSS_GJ - middle_G[..., None]
        near = torch.stack(
            [from_middle_GJ / 12, from_middle_GJ * _PER_METRE_G[:, None] / (2 * TOKEN_PIXELS)], -1
        ).tanh()
        near = torch.unflatten(near, -3, (GROUND_TOKENS, ROWS)).transpose(-3, -2).flatten(-2)
        bands = bands.expand(*near.shape[:-1], -1)
        ground = torch.cat([cells, bands, near], -1)
        return F.pad(ground, (0, 0, 0, 0, TOKEN_ROWS - GROUND_TOKENS, 0))

    def _objects(self, sides_SP: Tensor, bends: Tensor, offset: Tensor, heading: Tensor, biome: Tensor) -> Tensor:
        """Per kind and cell: inside, across, up, near [.., 5, 8, 4 * 4 * 8]."""
        depth_SP, weight_SP = _tops(sides_SP)
        side_M = _each(bends, _SIDE_BM)[..., None, :].expand(*depth_SP.shape[:-1], -1)
        low = _index(depth_SP)
        part = depth_SP - low
        middle_SP = side_M.gather(-1, low) * (1 - part) + side_M.gather(-1, low + 1) * part
        middle_SP = middle_SP - offset[..., None] - heading[..., None] * depth_SP
        per_metre = (FOCAL / depth_SP)[..., None, :, :]  # [.., 1, S, P]
        size = torch.unflatten((_each(biome, self.sizes) * FAST).exp(), -1, (2, 3)) * _GUESS
        wide, tall, beside = size[..., None, None].unbind(-3)  # [.., K, 1, 1]
        column = _MIDDLE + (middle_SP[..., None, :, :] + _SIDE_SIGN * (HALF_ROAD + beside)) * per_metre
        half_wide, half_tall = wide / 2 * per_metre, tall / 2 * per_metre
        row = HORIZON + CAMERA * per_metre - half_tall
        of_kind = torch.stack([weight_SP * (sides_SP < 0), weight_SP * (sides_SP > 0)], -3)
        of_kind = of_kind.flatten(-2)[..., None, :]  # [.., K, 1, S * P]
        inside_W, across_W = _extent(_CELL_W, column, half_wide)  # [.., K, W, S * P]
        inside_R, up_R = _extent(_CELL_R, row, half_tall)
        marked = inside_W * of_kind
        nearness = per_metre.log().flatten(-2)[..., None, :]
        left = torch.stack([marked, across_W * of_kind, marked, marked * nearness], -3)
        right = torch.stack([inside_R, inside_R, up_R, inside_R], -3)
        drawn = right @ left.transpose(-2, -1)  # [.., K, 4, R, W]
        return _by_token(drawn.flatten(-4, -3).movedim(-3, -1), TOKEN_ROWS, CELLS)

    def _skyline(self, skyline: Tensor, heading: Tensor, biome: Tensor) -> Tensor:
        """The panorama where each token of the two rows of sky looks, and the fine phase [.., 5, 8, 140]."""
        turned = _turned(skyline) * PANORAMA / (2 * math.pi) + heading * FOCAL  # pixels [.., 1]
        at = torch.remainder((turned[..., None] * _PARALLAX[:, None] + _KNOT_X) / KNOT, PANORAMA // KNOT)  # [.., 2, X]
        low = _index(at)
        part, low = (at - low)[..., None], low % (PANORAMA // KNOT)
        table = torch.unflatten(_each(biome, self.panorama) * BRIGHT, -1, (2, PANORAMA // KNOT, DEEP))
        first, second = (_looked_up(table, i) for i in (low, (low + 1) % (PANORAMA // KNOT)))
        layers = first * (1 - part) + second * part  # [.., 2, X, DEEP]
        by_token = torch.unflatten(layers, -2, (TOKEN_COLUMNS, -1)).movedim(-4, -2).flatten(-3)
        grain = (turned[..., None] * _PARALLAX[:, None] * _GRAIN).flatten(-2)  # [.., 6]
        grain = torch.cat([grain.sin(), grain.cos()], -1)[..., None, :].expand(*by_token.shape[:-1], -1)
        sky = torch.cat([by_token, grain], -1)[..., None, :, :]
        sky = sky.expand(*sky.shape[:-3], TOKEN_ROWS - GROUND_TOKENS, *sky.shape[-2:])
        return F.pad(sky, (0, 0, 0, 0, 0, GROUND_TOKENS))


def _each(lines: Tensor, matrix: Tensor) -> Tensor:
    """Products of lines by themselves: what one sees does not depend on how many look."""
    if torch.is_grad_enabled() or lines.numel() == lines.shape[-1]:
        return lines @ matrix
    flat = lines.reshape(-1, lines.shape[-1])
    return invariant_matmul(flat, matrix, lines.dtype, tile=1).view(*lines.shape[:-1], -1)


def _by_token(cells: Tensor, tokens: int, rows: int) -> Tensor:
    """Planes of cells [.., tokens * rows, 8 * CELLS, n] to each token's own [.., tokens, 8, rows * CELLS * n]."""
    apart = torch.unflatten(torch.unflatten(cells, -3, (tokens, rows)), -2, (TOKEN_COLUMNS, CELLS))
    return apart.transpose(-4, -3).flatten(-3)


def _tops(sides_SP: Tensor) -> tuple[Tensor, Tensor]:
    """Each place's guess at the distance of the object it is part of, and its share of that object."""
    mark = (sides_SP / MARK).abs()
    padded = F.pad(mark, (1, 1))
    nearer, farther = padded[..., :-2], padded[..., 2:]
    lean = (PEAK * (farther - nearer) / (nearer + mark + farther + 0.05)).clamp(-1.2, 1.2)
    sharp = mark**4
    around = F.pad(sharp, (2, 2)).unfold(-1, 5, 1).sum(-1)
    return (_PLACE_P + lean * _SPREAD_P).clamp(NEAR, FAR), sharp / (around + 0.03)


def _extent(cells: Tensor, centre: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    """How far cells lie inside intervals, and where in [-1, 1] of them [.., K, cells, S * P]."""
    centre, half = centre.flatten(-2)[..., None, :], half.flatten(-2)[..., None, :]
    away = cells[:, None] - centre
    inside = ((half - away.abs()) / CELL + 0.5).clamp(0, 1)
    return inside, (away / half.clamp_min(0.5)).clamp(-1, 1) * inside


def _turned(skyline: Tensor) -> Tensor:
    """Radians turned, from waves of once, twice and four times the angle; the finer ones make it exact [.., 1]."""
    sine, cosine = torch.unflatten(skyline, -1, (3, 2)).unbind(-1)
    once, twice, fourfold = torch.atan2(sine, cosine)[..., None].unbind(-2)
    for angle, times in ((twice, 2), (fourfold, 4)):
        once = once + (torch.remainder(angle - times * once + math.pi, 2 * math.pi) - math.pi) / times
    return once


def _index(at: Tensor) -> Tensor:
    """Whole numbers below; what is not a number reads entry 0 and spoils the result elsewhere."""
    return at.floor().nan_to_num(0.0).long()


def _looked_up(table: Tensor, index: Tensor) -> Tensor:
    return table.gather(-2, index[..., None].expand(*index.shape, DEEP))


def _speed_bar(speed: Tensor) -> Tensor:
    """How far the speed bar fills each token of the lowest row [.., 5, 8, 1]."""
    left, per_speed = SPEED_BAR
    edge = left + per_speed * (SPEED_MIDDLE + SPEED_UNIT * speed[..., None])
    filled_J = ((edge - (_TOKEN_J + 0.5 - TOKEN_PIXELS / 2)) / TOKEN_PIXELS).clamp(0, 1)
    return F.pad(filled_J[..., None, :, None], (0, 0, 0, 0, TOKEN_ROWS - 1, 0))
