"""What `worldroom bench kernels` runs: every operation at a size that a world has, its formula in float64, its costs.

Two sizes: `small`, what a world on a CPU does in a step, and a chunk of Wan 1.3B (3 latent frames of 60 x 104).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ...kernels import chunk_attention as attention
from ...kernels import frames_to_yuv as yuv
from ...kernels import invariant_matmul, invariant_reduce, noise, norm_modulate, philox, qk_norm_rope, sampler_step
from ...kernels.backend import Backend, Choice
from ...kernels.philox import NoiseKey, blocks_of

CHECKED = 64  # queries: float64 scores of all would not fit
Run = Callable[[Backend | None], Tensor]


@dataclass(frozen=True, slots=True)
class Case:
    """One operation at one size. `exact()` in float64; bytes and FLOP of one run as the kernels' docstrings count.

    `sdpa`: the same by torch's fused attention, past gathered first. `compiles`: not numpy, no long loop.
    """

    name: str
    size: str
    dtype: torch.dtype
    choice: Choice
    run: Run
    exact: Callable[[], Tensor]
    bytes: int
    flop: int
    sdpa: Callable[[], Tensor] | None = None
    compiles: bool = True


@dataclass(frozen=True, slots=True)
class CaseSizes:
    """Of a chunk: rows, frames, tokens of a frame, heads, their width, chunks of the past, shown pixels, latents."""

    rows: int
    frames: int
    tokens: int
    heads: int
    width: int
    past: int
    picture: tuple[int, int, int]
    latent: tuple[int, ...]

    @property
    def all_tokens(self) -> int:
        return self.frames * self.tokens

    @property
    def dim(self) -> int:
        return self.heads * self.width


SMALL = CaseSizes(4, 1, 64, 6, 32, 8, (1, 128, 128), (16, 3, 8, 8))
WAN = CaseSizes(2, 3, 1560, 12, 128, 6, (12, 480, 832), (16, 3, 60, 104))


def cases(device: torch.device, sizes: CaseSizes, dtype: torch.dtype) -> Iterator[Case]:
    """All of them, one at a time: what one has drawn is gone before the next draws."""
    draw = _Draw(device, dtype)
    yield _norm(draw, sizes)
    yield _rope(draw, sizes)
    for stored in (dtype, torch.int8, attention.FP8):
        yield _attention(draw, sizes, stored)
    yield _sampler(draw, sizes)
    yield _noise(device, sizes)
    yield _yuv(draw, sizes)
    yield _product(draw, sizes)
    yield _mean(draw, sizes)


class _Draw:
    """Normal tensors; every call another."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        self._generator = torch.Generator().manual_seed(0)

    def __call__(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        return torch.randn(shape, generator=self._generator).to(self.device, dtype or self.dtype)


def _norm(draw: _Draw, s: CaseSizes) -> Case:
    x, y = draw(s.rows, s.all_tokens, s.dim), draw(s.rows, s.all_tokens, s.dim)
    gate, scale, shift = (draw(s.rows, s.frames, s.dim, dtype=torch.float32) for _ in range(3))

    def exact() -> Tensor:
        h = (x.double() + y.double() * _each_token(gate, s)).to(x.dtype).double()
        z = F.layer_norm(h, h.shape[-1:], eps=1e-6)
        return z * (1 + _each_token(scale, s)) + _each_token(shift, s)

    def run(backend: Backend | None) -> Tensor:
        return norm_modulate.gate_norm_modulate(x, y, gate, scale, shift, backend=backend)[1]

    moved = 4 * x.numel() * x.element_size() + 3 * gate.numel() * 4
    size = f"{s.rows} x {s.all_tokens} x {s.dim}"
    return Case("norm_modulate", size, x.dtype, norm_modulate.choose(x), run, exact, moved, 10 * x.numel())


def _each_token(modulation_BFM: Tensor, s: CaseSizes) -> Tensor:
    return modulation_BFM.double().repeat_interleave(s.tokens, 1)


def _rope(draw: _Draw, s: CaseSizes) -> Case:
    q, k, v = (draw(s.rows, s.all_tokens, s.heads, s.width) for _ in range(3))
    turn = draw(s.rows, s.all_tokens, s.width // 2, dtype=torch.float32)
    norms = qk_norm_rope.Norms(draw(s.heads, s.width), draw(s.heads, s.width))
    slab = torch.zeros(s.rows, 2, s.all_tokens, s.heads, s.width, dtype=q.dtype, device=q.device)
    staged = qk_norm_rope.Staged(slab, torch.arange(s.rows, dtype=torch.int32, device=q.device), False)
    cos, sin = turn.cos(), turn.sin()

    def exact() -> Tensor:
        made = []
        for x, weight in ((q, norms.q_HD), (k, norms.k_GD)):
            y = x.double() * (x.double().square().mean((2, 3), keepdim=True) + norms.eps).rsqrt()
            y = y if weight is None else y * weight.double()
            a, b = y[..., ::2], y[..., 1::2]
            c, d = cos.double()[:, :, None], sin.double()[:, :, None]
            made.append(torch.stack((a * c - b * d, a * d + b * c), -1).flatten(-2))
        return torch.stack(made)

    def run(backend: Backend | None) -> Tensor:
        return torch.stack(qk_norm_rope.qk_norm_rope(q, k, v, (cos, sin), norms, staged, backend=backend))

    size = f"{s.rows} x {s.all_tokens} x {s.heads} x {s.width}"
    moved, flop = 7 * q.numel() * q.element_size(), 20 * q.numel()
    return Case("qk_norm_rope", size, q.dtype, qk_norm_rope.choose(q), run, exact, moved, flop)


def _attention(draw: _Draw, s: CaseSizes, stored: torch.dtype) -> Case:
    """Row i is i chunks younger than the oldest: sessions of different ages in one call. First queries are checked."""
    q, k, v = (draw(s.rows, s.all_tokens, s.heads, s.width) for _ in range(3))
    kept = draw(s.rows * s.past, 2, s.all_tokens, s.heads, s.width, dtype=torch.float32)
    small = stored in (torch.int8, attention.FP8)
    scales = kept.abs().amax((2, 4)) / (127 if stored is torch.int8 else 448)
    scales_E2SG = scales[:, :, None].expand(*kept.shape[:4])
    kept = kept / scales_E2SG[..., None] if small else kept
    slab = (kept.round() if stored is torch.int8 else kept).to(stored)
    there = torch.arange(s.past)[None] + torch.arange(s.rows)[:, None] < s.past
    lengths = torch.where(there, s.all_tokens, 0).to(torch.int32).to(q.device)
    entries = torch.arange(s.rows * s.past, dtype=torch.int32, device=q.device).reshape(s.rows, s.past)
    past = attention.AttendedPast(slab, entries, lengths, None, scales_E2SG if small else None)

    def gathered(row: int, dtype: torch.dtype, queries: int) -> tuple[Tensor, Tensor, Tensor]:
        mine = slab[row * s.past : row * s.past + int(there[row].sum())].to(dtype)
        if small:
            mine = mine * scales_E2SG[row * s.past : row * s.past + len(mine), ..., None].to(dtype)
        both = mine.transpose(0, 1).flatten(1, 2)
        return (
            q[row, :queries].to(dtype),
            torch.cat([both[0], k[row].to(dtype)]),
            torch.cat([both[1], v[row].to(dtype)]),
        )

    def fused(dtype: torch.dtype, queries: int) -> Tensor:
        made = []
        for row in range(s.rows):
            q_1HTD, k_1HSD, v_1HSD = (x.transpose(0, 1)[None] for x in gathered(row, dtype, queries))
            made.append(F.scaled_dot_product_attention(q_1HTD, k_1HSD, v_1HSD).transpose(1, 2))
        return torch.cat(made)

    seen = int(there.sum()) + s.rows
    values = 2 * s.all_tokens * s.heads * s.width
    moved = values * (int(there.sum()) * slab.element_size() + 2 * s.rows * q.element_size())
    flop = 4 * s.all_tokens**2 * s.heads * s.width * seen
    return Case(
        f"chunk_attention, {str(stored).removeprefix('torch.')} past", f"{s.rows} x {s.all_tokens} over {s.past + 1}..",
        q.dtype, attention.choose(q), lambda b: attention.chunk_attention(q, past, (k, v), backend=b)[:, :CHECKED],
        lambda: fused(torch.float64, CHECKED), moved, flop, lambda: fused(q.dtype, s.all_tokens),
    )  # fmt: skip


def _sampler(draw: _Draw, s: CaseSizes) -> Case:
    x, velocity = (draw(s.rows, *s.latent, dtype=torch.float32) for _ in range(2))
    steps = [sampler_step.SamplerMove(0.9, 0.8, NoiseKey(row, 0, 5, 1)) for row in range(s.rows)]

    def exact() -> Tensor:
        fresh = torch.stack([noise.reference(step.key or NoiseKey(0, 0, 0, 0), x[0].numel()) for step in steps])
        clean = x.double() - 0.9 * velocity.double()
        return (1 - 0.8) * clean + 0.8 * fresh.reshape(x.shape).to(x.device).double()

    def run(backend: Backend | None) -> Tensor:
        return sampler_step.sampler_step(x, velocity, steps, backend=backend)

    size = " x ".join(map(str, x.shape))
    return Case(
        "sampler_step", size, x.dtype, sampler_step.choose(x), run, exact, 12 * x.numel(), 75 * x.numel(), None, False
    )


def _noise(device: torch.device, s: CaseSizes) -> Case:
    keys = [NoiseKey(row, 0, 5, 1) for row in range(s.rows)]
    count = s.rows * math.prod(s.latent)

    def run(backend: Backend | None) -> Tensor:
        return noise.gaussian(keys, s.latent, device, backend=backend)

    def exact() -> Tensor:
        return torch.stack([_box_muller(key, math.prod(s.latent)) for key in keys]).reshape(-1, *s.latent).to(device)

    size = " x ".join(map(str, (s.rows, *s.latent)))
    return Case("noise", size, torch.float32, noise.choose(device), run, exact, 4 * count, 70 * count, None, False)


def _box_muller(key: NoiseKey, count: int) -> Tensor:
    """The same words by the formula of the textbook, in float64."""
    words = philox.words(key, 4 * blocks_of(count)).reshape(-1, 4).T
    radius = np.sqrt(-2 * np.log(((words >> 33) | 1) / 2.0**31))
    low = words & 0xFFFFFFFF
    angle = np.pi / 2 * ((low >> 30) + (low & 0x3FFFFFFF) / 2.0**30 - 0.5)
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return torch.from_numpy(both.reshape(-1)[:count])


def _yuv(draw: _Draw, s: CaseSizes) -> Case:
    frames, height, width = s.picture
    rgb = draw(frames, 3, height, width, dtype=torch.float32) / 3

    def exact() -> Tensor:
        x = (rgb.double().clamp(-1, 1) + 1) / 2
        means = F.avg_pool2d(x, 2)
        light, mean_light = (t[:, 0] * 0.2126 + t[:, 1] * 0.7152 + t[:, 2] * 0.0722 for t in (x, means))
        cb, cr = (means[:, 2] - mean_light) / 1.8556, (means[:, 0] - mean_light) / 1.5748
        planes = (16 + 219 * light, 128 + 224 * cb, 128 + 224 * cr)
        return torch.cat([(plane + 0.5).floor().flatten(1) for plane in planes], 1)

    pixels = frames * height * width
    return Case(
        "frames_to_yuv", f"{frames} x {height} x {width}", rgb.dtype, yuv.choose(rgb),
        lambda backend: yuv.frames_to_yuv(rgb, backend=backend), exact, 12 * pixels + 3 * pixels // 2, 30 * pixels,
    )  # fmt: skip


def _product(draw: _Draw, s: CaseSizes) -> Case:
    a, b = draw(s.rows * s.all_tokens, s.dim), (draw(4 * s.dim, s.dim) / s.dim**0.5).T

    def run(backend: Backend | None) -> Tensor:
        return invariant_matmul.invariant_matmul(a, b, a.dtype, backend=backend)

    rows, inner, columns = a.shape[0], a.shape[1], b.shape[1]
    moved = (a.numel() + b.numel() + rows * columns) * a.element_size()
    choice, size = invariant_matmul.choose(a), f"{rows} x {inner} x {columns}"
    return Case(
        "invariant_matmul",
        size,
        a.dtype,
        choice,
        run,
        lambda: a.double() @ b.double(),
        moved,
        2 * a.numel() * columns,
        None,
        False,
    )


def _mean(draw: _Draw, s: CaseSizes) -> Case:
    x = draw(s.rows, s.all_tokens, s.dim)
    mean = invariant_reduce.Reduction.MEAN

    def run(backend: Backend | None) -> Tensor:
        return invariant_reduce.invariant_reduce(x, mean, torch.float32, backend=backend)

    size = f"{s.rows} x {s.all_tokens} x {s.dim}"
    return Case(
        "invariant_reduce", size, x.dtype, invariant_reduce.choose(x), run, lambda: x.double().mean(-1),
        x.numel() * x.element_size(), x.numel(),
    )  # fmt: skip
