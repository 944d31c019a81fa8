"""The sizes of the driving world's transformer, and maps that treat picture and memory tokens apart.

Legend: N tokens of a frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..shared.road.blocks import TiledLinear
from ..shared.road.sizes import RoadSizes
from .memory import MEMORY_TOKENS, PICTURE_TOKENS


@dataclass(frozen=True, slots=True)
class DriveShape(RoadSizes):
    """`innovations`: numbers of chance that move the memory on."""

    layout: str = "STSTSTS"
    window: int = 11
    tokens: int = PICTURE_TOKENS + MEMORY_TOKENS
    channels: int = 32
    controls: int = 4
    look: int = 12
    innovations: int = 5


class TokenLinear(nn.Module):
    """A linear map of its own for picture tokens and for memory tokens [..., N, inputs] -> [..., N, outputs]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.picture = TiledLinear(inputs, outputs, PICTURE_TOKENS)
        self.memory = TiledLinear(inputs, outputs, MEMORY_TOKENS)

    def forward(self, x_NI: Tensor) -> Tensor:
        picture, memory = x_NI[..., :PICTURE_TOKENS, :], x_NI[..., PICTURE_TOKENS:, :]
        return torch.cat([self.picture(picture), self.memory(memory)], -2)
