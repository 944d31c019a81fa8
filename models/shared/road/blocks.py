"""What transformers of the road are made of: spatial and temporal blocks.

Legend: B rows, F frames, N tokens of a frame, W width, H heads, D width of a head, S kept frames, 6 = AdaLN-single's
six modulations. Pure functions of tensors; nothing here knows frames' meaning or keeps anything.

A frame's bits do not depend on the frames beside it: every product by weights is a `TiledLinear`, all else is
elementwise, a norm or softmax over a last axis, or a product of its own per frame and head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ....kernels.invariant_matmul import invariant_linear
from .sizes import RoadSizes

AT_FIRST = -5.0  # bias of the past before training: a frame learns to listen to it
_MASKED = -1e4


@dataclass(frozen=True, slots=True)
class KVView:
    """Committed K and V in ring order [B, L temporal blocks, N, H, S, D], and the age of each entry in frames.

    Ages are relative to the frame that is committed or generated: 1 is the frame just before it, 0 an empty entry.
    Entries older than the window are ignored.
    """

    k_BLNHSD: Tensor
    v_BLNHSD: Tensor
    ages_BS: Tensor


@dataclass(frozen=True, slots=True)
class CommittedKV:
    """K and V of one clean frame [B, L, N, H, D], to be staged into a free ring entry."""

    k_BLNHD: Tensor
    v_BLNHD: Tensor


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax attention by plain matmuls: on a CPU faster than the fused kernel, forward and backward."""
    attended: Tensor = ((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)).softmax(-1) @ v
    return attended


class TiledLinear(nn.Linear):
    """A linear map of `tile` lines after the other: a frame's tokens, or one line of what conditions it.

    Where gradients are recorded torch's own product runs, whose rows may feel each other in the last bits.
    """

    def __init__(self, inputs: int, outputs: int, tile: int, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias)
        self.tile = tile

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return F.linear(x, self.weight, self.bias)
        return invariant_linear(x, self.weight, self.bias, self.tile)


class Spatial(nn.Module):
    """Attention over the tokens of one frame and a squared-ReLU MLP, both modulated by the condition."""

    def __init__(self, shape: RoadSizes) -> None:
        super().__init__()
        w, n = shape.width, shape.tokens
        self.heads = shape.heads
        self.qkv, self.out = TiledLinear(w, 3 * w, n, bias=False), TiledLinear(w, w, n, bias=False)
        self.up, self.down = TiledLinear(w, 4 * w, n), TiledLinear(4 * w, w, n)
        self.table = nn.Parameter(torch.zeros(6, w))
        for zeroed in (self.out.weight, self.down.weight, self.down.bias):
            nn.init.zeros_(zeroed)

    def forward(self, h_BFNW: Tensor, modulation_BF16W: Tensor) -> Tensor:
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = (modulation_BF16W + self.table).unbind(3)
        qkv = self.qkv(modulated(h_BFNW, shift, scale)).unflatten(-1, (3, self.heads, -1))
        qkv = qkv.permute(3, 0, 1, 4, 2, 5)  # [3, B, F, H, N, D]
        q, k = _unit(qkv[:2]).unbind(0)
        attended = attend(q, k, qkv[2]).transpose(2, 3)  # [B, F, N, H, D]
        h = h_BFNW + (1 + gate) * self.out(attended.flatten(-2))
        hidden = F.relu(self.up(modulated(h, mlp_shift, mlp_scale))).square()
        z: Tensor = h + (1 + mlp_gate) * self.down(hidden)
        return z


class Temporal(nn.Module):
    """Attention of each token to the same token of past frames (through kept K and V) and to itself."""

    def __init__(self, shape: RoadSizes) -> None:
        super().__init__()
        w, n = shape.width, shape.tokens
        self.heads = shape.heads
        self.query, self.out = TiledLinear(w, w, n, bias=False), TiledLinear(w, w, n, bias=False)
        self.kept, self.own = TiledLinear(w, 2 * w, n, bias=False), TiledLinear(w, 2 * w, n, bias=False)
        self.table = nn.Parameter(torch.zeros(3, w))
        ages = torch.arange(shape.window + 1)
        self.age_bias = nn.Parameter(torch.where(ages > 0, AT_FIRST, 0.0).repeat(shape.heads, 1))
        nn.init.zeros_(self.out.weight)

    def remember(self, context_BFNW: Tensor) -> tuple[Tensor, Tensor]:
        """K and V of clean frames [B, N, H, F, D]."""
        return self._key_value(self.kept, F.layer_norm(context_BFNW, context_BFNW.shape[-1:]))

    def forward(self, h_BFNW: Tensor, modulation_BF16W: Tensor, k: Tensor, v: Tensor, ages: Tensor) -> Tensor:
        """`k`, `v` [B, N, H, S, D] are what is remembered, `ages` [B or 1, F, S] how many frames back each lies."""
        shift, scale, gate = (modulation_BF16W[:, :, :, :3] + self.table).unbind(3)
        y = modulated(h_BFNW, shift, scale)
        q = _unit(self.query(y).unflatten(-1, (self.heads, -1)).permute(0, 2, 3, 1, 4))
        own_k, own_v = self._key_value(self.own, y)
        scale_by = q.shape[-1] ** -0.5
        past = (q @ k.transpose(-1, -2)) * scale_by + self._bias(ages)
        itself = (q * own_k).sum(-1, keepdim=True) * scale_by + self.age_bias[:, 0, None, None]
        weight = torch.cat([past, itself], -1).softmax(-1)
        attended = weight[..., :-1] @ v + weight[..., -1:] * own_v
        z: Tensor = h_BFNW + (1 + gate) * self.out(attended.permute(0, 3, 1, 2, 4).flatten(-2))
        return z

    def _key_value(self, layer: TiledLinear, y_BFNW: Tensor) -> tuple[Tensor, Tensor]:
        k, v = layer(y_BFNW).unflatten(-1, (2, self.heads, -1)).permute(3, 0, 2, 4, 1, 5).unbind(0)
        return _unit(k), v

    def _bias(self, ages_BFS: Tensor) -> Tensor:
        """Learned bias [B, 1, H, F, S] of looking that far back; ages outside 1..window are not seen."""
        window = self.age_bias.shape[1] - 1
        seen = (ages_BFS > 0) & (ages_BFS <= window)
        bias = self.age_bias[:, ages_BFS.clamp(0, window)].masked_fill(~seen, _MASKED)
        return bias.transpose(0, 1)[:, None]


def modulated(h_BFNW: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """What kernels/norm_modulate computes, without its checks, which cost one row as much again."""
    return torch.addcmul(shift, F.layer_norm(h_BFNW, h_BFNW.shape[-1:]), 1 + scale)


def _unit(heads: Tensor) -> Tensor:
    """Scaled to unit RMS over the head's width; faster on a CPU than torch's own, which copies first."""
    return heads * (heads.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
