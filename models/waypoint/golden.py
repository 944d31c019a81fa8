"""The Waypoint rollout as one straight line over a table of weights: no cache, no loop, no code of the family.

Every pass goes over all frames so far, clean ones at level 0 and the newest at its own, under masks that say which
frame a local and a global layer may see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import linear, silu

from ...kernels.philox import NoiseKey, gaussian

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Sizes:
    heads: int
    kv_heads: int
    rows: int
    columns: int
    local: int
    distant: int
    dilation: int
    global_every: int


def rollout(w: Weights, sizes: Sizes, controls: Sequence[Tensor], prompts: Sequence[Tensor], seed: int) -> list[Tensor]:
    """Clean latents [T, C] of every frame, one control vector and one prompt each."""
    levels = (1.0, 0.861, 0.729, 0.3205, 0.0)
    made: list[Tensor] = []
    channels = w["read.weight"].shape[1]
    for frame in range(len(controls)):
        x = torch.from_numpy(gaussian(NoiseKey(seed, 0, frame, 0), (sizes.rows * sizes.columns, channels)))
        for level, lower in pairwise(levels):
            stack = torch.stack([*made, x])
            velocity = whole(w, sizes, stack, level, controls[: frame + 1], prompts[: frame + 1])
            x = x + velocity * (lower - level)
        made.append(x)
    return made


def whole(
    w: Weights, sizes: Sizes, x: Tensor, level: float, controls: Sequence[Tensor], prompts: Sequence[Tensor]
) -> Tensor:
    """Velocity of the newest of x [F, T, C] in one pass over all of them."""
    frames, head = len(x), w["layers.0.q.weight"].shape[0] // sizes.heads
    h = _lin(w, "read", x)
    levels = torch.tensor([0.0] * (frames - 1) + [level], dtype=torch.float64)
    phase = 1000 * levels[:, None] * 10000.0 ** (-torch.arange(16, dtype=torch.float64) / 16)
    e = silu(_lin(w, "noise.0", torch.cat((phase.cos(), phase.sin()), 1).float()))
    t = torch.arange(frames)
    near = (t[None] <= t[:, None]) & (t[None] >= t[:, None] - sizes.local)
    kept = [[*list(range(0, f, sizes.dilation))[-sizes.distant :], f] for f in range(frames)]
    far = torch.tensor([[g in row for g in range(frames)] for row in kept])
    layer = 0
    while f"layers.{layer}.q.weight" in w:
        b = f"layers.{layer}."
        m = _lin(w, b + "modulation", e)[:, None].chunk(6, -1)
        y = _unit(h) * (1 + m[1]) + m[0]
        q, k, v = (_lin(w, b + name, y).reshape(*y.shape[:2], -1, head) for name in "qkv")
        q, k = _turned(_unit(q), sizes), _turned(_unit(k), sizes)
        k, v = (z.repeat_interleave(sizes.heads // sizes.kv_heads, 2) for z in (k, v))
        sees = far if layer % sizes.global_every == sizes.global_every - 1 else near
        scores = torch.einsum("fpnd,gsnd->nfpgs", q, k) / head**0.5
        scores = scores.masked_fill(~sees[None, :, None, :, None], float("-inf"))
        shares = scores.flatten(3).softmax(-1).view_as(scores)
        h = h + m[2] * _lin(w, b + "o", torch.einsum("nfpgs,gsnd->fpnd", shares, v).flatten(2))
        if b + "ask.weight" in w:
            c = torch.stack(list(controls))
            h = h + _lin(w, b + "control.2", silu(_lin(w, b + "control.0", c)))[:, None]
            p = torch.stack(list(prompts))
            asked = _lin(w, b + "ask", _unit(h)) @ p.transpose(1, 2) / p.shape[-1] ** 0.5
            h = h + _lin(w, b + "answer", asked.softmax(-1) @ p)
        h = h + m[5] * _lin(w, b + "down", silu(_lin(w, b + "up", _unit(h) * (1 + m[4]) + m[3])))
        layer += 1
    return _lin(w, "write", _unit(h))[-1]


def _turned(x: Tensor, sizes: Sizes) -> Tensor:
    """Pair i is (i, i + D / 2): half of the pairs turn with time, a quarter with the column, a quarter with the row."""
    frames, _, _, head = x.shape
    pairs = head // 2
    side = pairs // 4
    angles = torch.zeros(frames, sizes.rows, sizes.columns, pairs, dtype=torch.float64)
    time = pairs - 2 * side
    for start, count, axis in ((0, time, 0), (time, side, 2), (time + side, side, 1)):
        turn = torch.outer(
            torch.arange(angles.shape[axis]).double(), 10000.0 ** (-torch.arange(count).double() / count)
        )
        angles[..., start : start + count] = turn.view([-1 if a == axis else 1 for a in range(3)] + [count])
    z = torch.complex(x[..., :pairs].double(), x[..., pairs:].double())
    z = z * torch.polar(torch.ones_like(angles), angles).view(frames, -1, 1, pairs)
    return torch.cat((z.real, z.imag), -1).float()


def _unit(x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


def _lin(w: Weights, name: str, x: Tensor) -> Tensor:
    return linear(x, w[name + ".weight"], w[name + ".bias"])
