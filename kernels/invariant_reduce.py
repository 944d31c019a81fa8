"""Sum or mean of every row in one fixed order, so a row's bits never depend on the other rows, nor on the device.

    lanes   l[i] = x[i] + x[256 + i] + x[512 + i] + ..        one after the other, i in 0..255
    tree    l[i] = l[i] + l[half + i],  half = 128, 64, .. 1

Additions in float32 and nothing else, hence the same bits from torch on a CPU and from Triton on a GPU.
Moved: the input once; FLOP: one addition a value.
Source: fixed split-sizes for reductions, as in batch-invariant kernels (Thinking Machines, 2025).

Legend: R rows (any leading shape), N values of a row.
"""

from __future__ import annotations

import math
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn import functional as F

from .backend import Backend, Build, Choice, choice, jit, runs_triton, tl
from .checks import FLOATS, expect, expect_dtype, expect_floats

LANES = 256


class Reduction(StrEnum):
    """What becomes of a row."""

    SUM = "sum"
    MEAN = "mean"


def invariant_reduce(
    x_RN: Tensor, reduction: Reduction, out_dtype: torch.dtype, *, backend: Backend | None = None
) -> Tensor:
    """[..., N] to [...] in `out_dtype`. Raises BadInput; a mean of nothing too."""
    expect(x_RN.ndim > 0, "x has no axis to reduce")
    expect_floats(("x", x_RN))
    expect_dtype("out_dtype", out_dtype, *FLOATS)
    expect(reduction is Reduction.SUM or x_RN.shape[-1] > 0, "the mean of 0 values")
    if runs_triton(backend, choose(x_RN), x_RN.device):
        return _launched(x_RN, reduction, out_dtype)
    return _reference(x_RN, reduction, out_dtype)


def choose(x_RN: Tensor) -> Choice:
    return choice(x_RN.device, [])


def _reference(x: Tensor, reduction: Reduction, out_dtype: torch.dtype) -> Tensor:
    count = x.shape[-1]
    parts = F.pad(x.float(), (0, -count % LANES)).reshape(*x.shape[:-1], -1, LANES)
    lanes = torch.zeros((*x.shape[:-1], LANES), device=x.device)
    for part in parts.unbind(-2):
        lanes = lanes + part
    while lanes.shape[-1] > 1:
        low, high = lanes.chunk(2, -1)
        lanes = low + high
    total = lanes[..., 0]
    return (total / count if reduction is Reduction.MEAN else total).to(out_dtype)


@jit
def _kernel(
    x: tl.tensor, out: tl.tensor, count: tl.tensor, row_stride: tl.tensor, MEAN: tl.constexpr, LANES: tl.constexpr,
    LEVELS: tl.constexpr,
) -> None:  # fmt: skip
    """A program: one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, LANES)
    lanes = tl.zeros((LANES,), tl.float32)
    for start in range(0, count, LANES):
        lanes += tl.load(x + row * row_stride + start + at, start + at < count, 0.0).to(tl.float32)
    for level in tl.static_range(LEVELS):
        lanes = tl.sum(tl.reshape(lanes, (2, LANES >> (level + 1))), 0)
    total = tl.sum(lanes, 0)
    if MEAN:
        total = tl.div_rn(total, count.to(tl.float32))
    tl.store(out + row, total.to(out.dtype.element_ty))


def _launched(x: Tensor, reduction: Reduction, out_dtype: torch.dtype) -> Tensor:
    rows, count = math.prod(x.shape[:-1]), x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=out_dtype, device=x.device)
    if rows:
        x_RN = x.reshape(rows, count)
        mean, levels = reduction is Reduction.MEAN, LANES.bit_length() - 1
        _kernel[(rows,)](
            x_RN, out, count, x_RN.stride(0), MEAN=mean, LANES=LANES, LEVELS=levels, num_warps=4, enable_fp_fusion=False
        )
    return out


def builds() -> list[Build]:
    types = {"x": "*bf16", "out": "*fp32", "count": "i32", "row_stride": "i32"}
    constants = {"MEAN": True, "LANES": LANES, "LEVELS": LANES.bit_length() - 1}
    return [Build(_kernel, types, constants, 4, "exact", options={"enable_fp_fusion": False})]
