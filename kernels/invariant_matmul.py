"""A matrix product in which a row's bits never depend on how many rows there are, or where it stands among them.

    out = a @ b,  every element summed over K in the same order:  mm(a[:1], b) equals mm(a, b)[:1] to the bit

Libraries pick another tiling, split or instruction for few rows, so a session alone and in a batch differ in the last
bits. Here tiles are fixed (torch: 32 rows, the last one filled up with zeros; Triton: 64 x 64, K never split).
Moved: (M*K + K*N + M*N) values at least; FLOP: 2*M*K*N.
Source: defeating nondeterminism by batch-invariant kernels (Thinking Machines, 2025).

Legend: M rows, K inner, N columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .door import FLOATS, expect, expect_dtype, expect_shape
from .launch import WIDE, Backend, Build, Choice, choice, jit, runs_triton, tl

TILE = 32
_BLOCK = 64
_STEPS = {torch.float32: 16, torch.bfloat16: 32, torch.float16: 32}  # of K


def invariant_matmul(a_MK: Tensor, b_KN: Tensor, out_dtype: torch.dtype, *, backend: Backend | None = None) -> Tensor:
    """[M, N] in `out_dtype`, summed in float32. Any strides. Raises BadInput."""
    expect_shape("a", a_MK, (None, None))
    expect_shape("b", b_KN, (a_MK.shape[1], None))
    expect_dtype("a", a_MK.dtype, *FLOATS)
    expect_dtype("b", b_KN.dtype, a_MK.dtype)
    expect(b_KN.device == a_MK.device, f"b is on {b_KN.device}, a on {a_MK.device}")
    expect_dtype("out_dtype", out_dtype, *FLOATS)
    if runs_triton(backend, choose(a_MK), a_MK.device):
        return _launched(a_MK, b_KN, out_dtype)
    return _reference(a_MK, b_KN, out_dtype)


def choose(a_MK: Tensor) -> Choice:
    return choice(a_MK.device, [])


def _reference(a: Tensor, b: Tensor, out_dtype: torch.dtype) -> Tensor:
    """Tile by tile, each of the same size and aligned alike."""
    rows, inner = a.shape
    dtype = torch.promote_types(a.dtype, out_dtype)
    filled = torch.zeros(-(-rows // TILE) * TILE, inner, dtype=dtype, device=a.device)
    filled[:rows] = a
    b = b.to(dtype)
    tiles = [tile @ b for tile in filled.reshape(-1, TILE, inner).unbind()]
    return torch.cat(tiles)[:rows].to(out_dtype) if tiles else a.new_zeros((0, b.shape[1]), dtype=out_dtype)


@jit
def _kernel(
    a: tl.tensor, b: tl.tensor, out: tl.tensor, rows: tl.tensor, columns: tl.tensor, inner: tl.tensor,
    a_row: tl.tensor, a_inner: tl.tensor, b_inner: tl.tensor, b_column: tl.tensor,
    BLOCK: tl.constexpr, STEP: tl.constexpr, WIDE: tl.constexpr,
) -> None:  # fmt: skip
    """A program: one tile of `out`, over all of K in order."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, STEP)
    x_at = a + row.to(tl.int64)[:, None] * a_row + k[None] * a_inner
    y_at = b + column.to(tl.int64)[None] * b_column + k[:, None] * b_inner
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, inner, STEP):
        x = tl.load(x_at, (row[:, None] < rows) & (k[None] < inner - start), 0.0)
        y = tl.load(y_at, (k[:, None] < inner - start) & (column[None] < columns), 0.0)
        x_at += STEP * a_inner
        y_at += STEP * b_inner
        if WIDE:
            x = x.to(tl.float32)
            y = y.to(tl.float32)
        total = tl.dot(x, y, total, input_precision="ieee")
    inside = (row[:, None] < rows) & (column[None] < columns)
    tl.store(out + row.to(tl.int64)[:, None] * columns + column[None], total.to(out.dtype.element_ty), inside)


def _launched(a: Tensor, b: Tensor, out_dtype: torch.dtype) -> Tensor:
    (rows, inner), columns = a.shape, b.shape[1]
    out = torch.empty((rows, columns), dtype=out_dtype, device=a.device)
    if out.numel():
        _kernel[(-(-rows // _BLOCK), -(-columns // _BLOCK))](
            a,
            b,
            out,
            rows,
            columns,
            inner,
            *a.stride(),
            *b.stride(),
            BLOCK=_BLOCK,
            STEP=_STEPS[a.dtype],
            WIDE=WIDE,
            num_warps=4,
        )
    return out


def builds() -> list[Build]:
    """Weights as a linear layer keeps them (K contiguous in both), and any strides."""
    sizes = ("rows", "columns", "inner", "a_row", "a_inner", "b_inner", "b_column")
    return [
        Build(
            _kernel,
            dict.fromkeys(("a", "b", "out"), f"*{name}") | dict.fromkeys(sizes, "i32"),
            {"BLOCK": _BLOCK, "STEP": _STEPS[dtype], "WIDE": False, **more},
            4,
            name + label,
            whole,
        )
        for name, dtype, more, label, whole in (
            ("bf16", torch.bfloat16, {"a_inner": 1, "b_inner": 1}, "", sizes),
            ("fp32", torch.float32, {}, ", odd strides", ()),
        )
    ]
