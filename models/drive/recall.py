"""Recall: a small network that moves a frame's memory on by one frame of keys and innovations.

It runs before the picture is painted, so the transformer knows where road and objects stand in the frame it paints.
Learned from simulated drives (training/drive/stage_memory.py); afterwards kept to what can be: values within the range
that was seen, phases on their circle.

Legend: .. leading axes, M = 3 memory tokens, C = 32 channels, K controls, I innovations.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shared.road.blocks import TiledLinear
from .memory import CHANNELS, MEMORY_TOKENS

PHASES = slice(6, 16)  # sine and cosine pairs of the car's token
RADIUS = 1.4
_WIDTH = MEMORY_TOKENS * CHANNELS


class Recall(nn.Module):
    """Memory of the next frame from memory, controls and innovations; a residual step, deterministic."""

    low: Tensor
    high: Tensor

    def __init__(self, controls: int, innovations: int, hidden: int = 384) -> None:
        super().__init__()
        self.inward = TiledLinear(_WIDTH + controls + innovations, hidden, 1)
        self.first, self.second = TiledLinear(hidden, hidden, 1), TiledLinear(hidden, hidden, 1)
        self.outward = TiledLinear(hidden, _WIDTH, 1)
        nn.init.zeros_(self.outward.weight)
        nn.init.zeros_(self.outward.bias)
        self.register_buffer("low", torch.full((_WIDTH,), -4.0))
        self.register_buffer("high", torch.full((_WIDTH,), 4.0))

    def forward(self, memory_MC: Tensor, controls_K: Tensor, innovations_I: Tensor) -> Tensor:
        """[.., M, C], [.., K], [.., I] -> [.., M, C]."""
        now = memory_MC.flatten(-2)
        h = F.silu(self.inward(torch.cat([now, controls_K, innovations_I], -1)))
        h = h + F.silu(self.first(h))
        h = h + F.silu(self.second(h))
        return self.settled(now + self.outward(h)).reshape(memory_MC.shape)

    def settled(self, flat: Tensor) -> Tensor:
        """Within the range seen in training, and phases back on their circle."""
        kept = torch.maximum(torch.minimum(flat, self.high), self.low)
        waves = kept[..., PHASES].reshape(*kept.shape[:-1], -1, 2)
        waves = waves * (RADIUS / waves.norm(dim=-1, keepdim=True).clamp_min(0.1))
        return torch.cat([kept[..., : PHASES.start], waves.flatten(-2), kept[..., PHASES.stop :]], -1)
