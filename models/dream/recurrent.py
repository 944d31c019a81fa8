"""The dream's recurrent tokens: what goes on from frame to frame beside pictures, moved by keys and noise.

`Recurrent` moves them on by one frame; `Reader` finds the first ones in the three pictures a world starts from;
`Spread` lays them out over the places of a picture. What their numbers mean is learned, as is what noise does to them.

Legend: .. leading axes, R numbers of the recurrent tokens, K controls, Z noise, L look, P picture tokens, C channels,
N tokens of a frame, W width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shared.road.blocks import TiledLinear
from .shape import DreamShape

LIMIT = 4.0  # no number of the recurrent tokens is ever larger
STAIRS = 12  # learned thresholds of each number of noise
_LAST = 2.4  # where the outer thresholds lie at first


class Recurrent(nn.Module):
    """[.., R], [.., K], [.., Z] -> [.., R]: a residual step. Rare events need thresholds, so noise comes with some."""

    def __init__(self, shape: DreamShape, hidden: int = 384) -> None:
        super().__init__()
        self.edges = nn.Parameter(torch.linspace(-_LAST, _LAST, STAIRS).repeat(shape.noise, 1))
        self.steep = nn.Parameter(torch.full((shape.noise, STAIRS), 6.0))
        inputs = shape.state + shape.controls + shape.noise * (1 + STAIRS)
        self.inward, self.gate = TiledLinear(inputs, hidden, 1), TiledLinear(inputs, hidden, 1)
        self.first, self.second = TiledLinear(hidden, hidden, 1), TiledLinear(hidden, hidden, 1)
        self.outward = TiledLinear(hidden, shape.state, 1)
        nn.init.zeros_(self.outward.weight)
        nn.init.zeros_(self.outward.bias)

    def forward(self, state_R: Tensor, controls_K: Tensor, noise_Z: Tensor) -> Tensor:
        stairs = torch.sigmoid(self.steep * (noise_Z[..., None] - self.edges)).flatten(-2)
        seen = torch.cat([state_R, controls_K, noise_Z, stairs], -1)
        h = self.inward(seen) * F.silu(self.gate(seen))
        h = h + F.silu(self.first(h))
        h = h + F.silu(self.second(h))
        moved: Tensor = (state_R + self.outward(h)).clamp(-LIMIT, LIMIT)
        return moved


class Reader(nn.Module):
    """[.., 3, P, C] newest first, [.., L] -> [.., R]."""

    def __init__(self, shape: DreamShape, pictures: int, each: int = 48, hidden: int = 384) -> None:
        super().__init__()
        self.inward = TiledLinear(3 * shape.channels + shape.look, each, pictures)
        self.place = nn.Parameter(torch.zeros(pictures, each))
        self.first, self.second = TiledLinear(pictures * each, hidden, 1), TiledLinear(hidden, hidden, 1)
        self.outward = TiledLinear(hidden, shape.state, 1)

    def forward(self, history_3PC: Tensor, look_L: Tensor) -> Tensor:
        tokens = torch.cat(history_3PC.unbind(-3), -1)
        look = look_L[..., None, :].expand(*tokens.shape[:-1], look_L.shape[-1])
        h = F.silu(self.inward(torch.cat([tokens, look], -1)) + self.place)
        h = F.silu(self.first(h.flatten(-2)))
        h = h + F.silu(self.second(h))
        found: Tensor = self.outward(h).clamp(-LIMIT, LIMIT)
        return found


class Spread(nn.Module):
    """[.., R], [.., L] -> [.., N, W]: what each place of a frame is told of the recurrent tokens, under a look."""

    def __init__(self, shape: DreamShape, hidden: int = 1024, each: int = 64) -> None:
        super().__init__()
        self.places = (shape.tokens, each)
        inputs = shape.state + shape.look
        self.inward, self.gate = TiledLinear(inputs, hidden, 1), TiledLinear(inputs, hidden, 1)
        self.first, self.second = TiledLinear(hidden, hidden, 1), TiledLinear(hidden, hidden, 1)
        self.outward = TiledLinear(hidden, shape.tokens * each, 1)
        self.each = TiledLinear(each, shape.width, shape.tokens, bias=False)

    def forward(self, state_R: Tensor, look_L: Tensor) -> Tensor:
        seen = torch.cat([state_R, look_L], -1)
        h = self.inward(seen) * F.silu(self.gate(seen))
        h = h + F.silu(self.first(h))
        h = h + F.silu(self.second(h))
        told: Tensor = self.each(self.outward(h).unflatten(-1, self.places))
        return told
