"""Sixteen rows in one call, any number of them, and each alone: the same bits from every operation of the exact batch.

Sizes are odd on purpose: a vectorised loop takes what is left at its end another way, and rows must not meet there.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from worldroom.kernels.backend import Backend
from worldroom.kernels.chunk_attention import AttendedPast, chunk_attention
from worldroom.kernels.invariant_matmul import invariant_matmul
from worldroom.kernels.invariant_reduce import Reduction, invariant_reduce
from worldroom.kernels.noise import gaussian
from worldroom.kernels.norm_modulate import Norm, gate_norm_modulate, gate_residual, norm_modulate
from worldroom.kernels.philox import NoiseKey
from worldroom.kernels.qk_norm_rope import Norms, Staged, qk_norm_rope
from worldroom.kernels.sampler_step import SamplerMove, sampler_step
from worldroom.tests.kernel_checks import drawn

Made = Callable[[slice], Tensor]
Case = Callable[[int, torch.dtype, Backend], Made]
FP32, BF16 = torch.float32, torch.bfloat16
ROWS, HEADS, WIDTH, FRAMES = 16, 3, 18, 3  # of a head: 54 in all, so that a row begins anywhere in a vector


def tokens_of(tokens: int, dtype: torch.dtype, seed: int) -> Tensor:
    return drawn((ROWS, FRAMES * tokens, HEADS * WIDTH), seed).to(dtype)


def modulations() -> tuple[Tensor, ...]:
    return drawn((ROWS, FRAMES, 3, HEADS * WIDTH), 9).unbind(2)


def adaptive_norm(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    x, (scale, shift, _) = tokens_of(tokens, dtype, 0), modulations()
    return lambda rows: norm_modulate(x[rows], scale[rows], shift[rows], backend=backend)


def learned_norm(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    x, weight = tokens_of(tokens, dtype, 0), drawn((HEADS * WIDTH,), 1).to(dtype)

    def made(rows: slice) -> Tensor:
        weight_BFM = weight.expand(len(x[rows]), 1, -1)
        return norm_modulate(x[rows], weight_BFM, None, norm=Norm.RMS, learned=True, backend=backend)

    return made


def gated(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    x, y, (_, _, gate) = tokens_of(tokens, dtype, 0), tokens_of(tokens, dtype, 1), modulations()
    return lambda rows: gate_residual(x[rows], y[rows], gate[rows], backend=backend)


def gated_norm(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    x, y, (scale, shift, gate) = tokens_of(tokens, dtype, 0), tokens_of(tokens, dtype, 1), modulations()
    return lambda rows: torch.stack(
        gate_norm_modulate(x[rows], y[rows], gate[rows], scale[rows], shift[rows], backend=backend), 1
    )


def normed_rotated_staged(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    """q', k' and what lies in the slab afterwards."""
    q, k, v = (tokens_of(tokens, dtype, seed).unflatten(2, (HEADS, WIDTH)) for seed in (0, 1, 2))
    angles, weights = drawn((ROWS, FRAMES * tokens, WIDTH // 2), 3) * 9, drawn((2, HEADS, WIDTH), 4).to(dtype)

    def made(rows: slice) -> Tensor:
        count = len(q[rows])
        slab = torch.zeros(count, 2, FRAMES * tokens, HEADS, WIDTH, dtype=dtype)
        staged = Staged(slab, torch.arange(count, dtype=torch.int32), plain=True)
        turn = angles[rows].cos(), angles[rows].sin()
        both = qk_norm_rope(q[rows], k[rows], v[rows], turn, Norms(*weights), staged, backend=backend)
        return torch.cat((torch.stack(both, 1), slab), 1)

    return made


def attention(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    """Rows of every age: 0 to 3 entries of the past, the last one half full."""
    q, k, v = (tokens_of(tokens, dtype, seed).unflatten(2, (HEADS, WIDTH)) for seed in (0, 1, 2))
    slab = drawn((7, 2, 5, HEADS, WIDTH), 3).to(dtype)
    lengths = torch.tensor([[(5, 5, 3)[j] * (j < row % 4) for j in range(3)] for row in range(ROWS)], dtype=torch.int32)
    entries = (torch.arange(3 * ROWS, dtype=torch.int32).reshape(ROWS, 3) % 7).where(lengths > 0, -1).to(torch.int32)
    return lambda rows: chunk_attention(
        q[rows], AttendedPast(slab, entries[rows], lengths[rows]), (k[rows], v[rows]), backend=backend
    )


def product(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    """Whole tiles under the interpreter: numpy's product, which it calls, feels where in a tile a row stands."""
    count = 64 if backend is Backend.TRITON else FRAMES * tokens
    x, weight = drawn((ROWS, count, HEADS * WIDTH), 0).to(dtype), drawn((37, HEADS * WIDTH), 1).to(dtype)
    return lambda rows: invariant_matmul(x[rows].flatten(0, 1), weight.T, FP32, backend=backend).unflatten(
        0, (-1, count)
    )


def reduction(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    x = tokens_of(tokens, dtype, 0)
    return lambda rows: invariant_reduce(x[rows], Reduction.MEAN, FP32, backend=backend)


def sampler(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    x, v = tokens_of(tokens, FP32, 0), tokens_of(tokens, FP32, 1)
    steps = [
        SamplerMove(1 - row / 20, 0.5 - row / 40, NoiseKey(row, 0, 7, 1) if row % 3 else None) for row in range(ROWS)
    ]
    return lambda rows: sampler_step(x[rows], v[rows], steps[rows], backend=backend)


def noise(tokens: int, dtype: torch.dtype, backend: Backend) -> Made:
    keys = [NoiseKey(row, 0, 7, 1) for row in range(ROWS)]
    return lambda rows: gaussian(keys[rows], (FRAMES * tokens, 7), torch.device("cpu"), backend=backend)


CASES: tuple[Case, ...] = (
    adaptive_norm, learned_norm, gated, gated_norm, normed_rotated_staged, attention, product, reduction, sampler,
    noise,
)  # fmt: skip


@pytest.mark.parametrize("dtype", [FP32, BF16])
@pytest.mark.parametrize("case", CASES)
def test_a_row_has_the_bits_it_has_alone_on_the_cpu(case: Case, dtype: torch.dtype) -> None:
    """On one thread and on two, whose shares of a loop end elsewhere."""
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            check(case(15, dtype, Backend.TORCH), range(1, ROWS + 1))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [FP32, BF16])
@pytest.mark.parametrize("case", CASES)
def test_a_row_has_the_bits_it_has_alone_from_the_kernel(case: Case, dtype: torch.dtype) -> None:
    check(case(1, dtype, Backend.TRITON), (1, 2, 3, 7, 16))


def check(made: Made, counts: range | tuple[int, ...]) -> None:
    alone = torch.cat([made(slice(row, row + 1)) for row in range(ROWS)])
    for count in counts:
        assert torch.equal(made(slice(0, count)), alone[:count])
    assert torch.equal(made(slice(5, 9)), alone[5:9])
