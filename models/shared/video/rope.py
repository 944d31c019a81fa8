"""Rotary positions of video tokens: a head's width is split between time, rows and columns (Wan 2.1's three axes).

    pairs of one head     [ time: rest | rows: width // 6 | columns: width // 6 ]     theta 10000
Angles are computed in float64, so a world may run for days; rotations are applied in float32.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Rotation:
    """cos and sin [T, 1, P] of T tokens, P pairs of a head."""

    cos_T1P: Tensor
    sin_T1P: Tensor


def rotation(head_width: int, rows: int, columns: int, first_frame: int, frames: int, device: torch.device) -> Rotation:
    """Rotation of the tokens of `frames` frames of rows x columns from number `first_frame` on, row by row."""
    third = head_width // 6
    widths = (head_width // 2 - 2 * third, third, third)
    places = torch.meshgrid(
        torch.arange(first_frame, first_frame + frames, dtype=torch.float64, device=device),
        torch.arange(rows, dtype=torch.float64, device=device),
        torch.arange(columns, dtype=torch.float64, device=device),
        indexing="ij",
    )
    angles = torch.cat(
        [place.reshape(-1, 1) * _frequencies(pairs, device) for place, pairs in zip(places, widths, strict=True)], 1
    )
    return Rotation(angles.cos().float()[:, None], angles.sin().float()[:, None])


def rotate(x_THD: Tensor, by: Rotation) -> Tensor:
    """Rotate adjacent pairs of the last axis; x [..., T, H, D], same dtype out."""
    a, b = x_THD.float().reshape(*x_THD.shape[:-1], -1, 2).unbind(-1)
    turned = torch.stack((a * by.cos_T1P - b * by.sin_T1P, a * by.sin_T1P + b * by.cos_T1P), -1)
    return turned.flatten(-2).to(x_THD.dtype)


def _frequencies(pairs: int, device: torch.device) -> Tensor:
    return 10000.0 ** (-torch.arange(pairs, dtype=torch.float64, device=device) / pairs)
