"""How the road moves in pictures, by optical flow: metres a frame that the ground comes nearer, columns it turns.

Least squares over two pictures (Lucas and Kanade 1981) with the camera's own motion as the only unknowns. On ground
row r a point d metres nearer is r'^2 / (C F) d rows lower and (x - 64) r' / (C F) d columns farther out, where
r' = r - 31.4; what turns the car moves ground and skyline sideways. Knows neither keys nor the judge.

Legend: N pairs of pictures, H rows, W columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from .simulator.road import CAMERA, FOCAL, FRAMES_PER_SECOND

_GROUND, _SKYLINE = slice(42, 58), slice(16, 31)  # rows, above the car
_ROW = torch.arange(_GROUND.start, _GROUND.stop).float()[:, None] - 31.4
_COLUMN = torch.arange(128).float()[None] - 63.5


@dataclass(frozen=True, slots=True)
class Motion:
    """`speed_N` in m/s; `turned_N` in columns a frame, positive when the scene moves left (the car turns right)."""

    speed_N: Tensor
    turned_N: Tensor


def motion(before_N3HW: Tensor, after_N3HW: Tensor) -> Motion:
    """Of pictures [N, 3, 80, 128] in [-1, 1] that follow each other."""
    first, second = (F.avg_pool2d(x.mean(1, keepdim=True), 3, 1, 1)[:, 0] for x in (before_N3HW, after_N3HW))
    across_NHW, down_NHW = _gradients((first + second) / 2)
    change_NHW = second - first
    share = 1 / (CAMERA * FOCAL)
    nearer = down_NHW[:, _GROUND] * _ROW.square() * share + across_NHW[:, _GROUND] * _COLUMN * _ROW * share
    sideways, ground = across_NHW[:, _GROUND], change_NHW[:, _GROUND]
    aa, ab, bb = ((p * q).sum((1, 2)) for p, q in ((nearer, nearer), (nearer, sideways), (sideways, sideways)))
    ac, bc = ((p * ground).sum((1, 2)) for p in (nearer, sideways))
    metres = -(bb * ac - ab * bc) / (aa * bb - ab * ab).clamp_min(1e-6)
    sky = across_NHW[:, _SKYLINE]
    turned = (sky * change_NHW[:, _SKYLINE]).sum((1, 2)) / sky.square().sum((1, 2)).clamp_min(1e-6)
    return Motion(metres * FRAMES_PER_SECOND, turned)


def _gradients(grey_NHW: Tensor) -> tuple[Tensor, Tensor]:
    across = F.pad(grey_NHW[:, :, 2:] - grey_NHW[:, :, :-2], (1, 1)) / 2
    down = F.pad(grey_NHW[:, 2:] - grey_NHW[:, :-2], (0, 0, 1, 1)) / 2
    return across, down
