"""A matrix product in which a row's bits never depend on how many rows there are, or where it stands among them.

    out = a @ b + bias,  every element summed over K in the same order:  mm(a[:1], b) equals mm(a, b)[:1] to the bit

Libraries pick another tiling, split or instruction for few rows, so a session alone and in a batch differ in the last
bits. Here tiles are fixed (torch: `tile` rows, the last one filled up with zeros; Triton: 64 x 64, K never split). A
caller whose rows come in groups names their size as `tile` and nothing is filled up. Tiles share a call of the library
where this machine gives each the bits it has alone (parts.py).
Moved: (M*K + K*N + M*N) values at least; FLOP: 2*M*K*N.
Source: defeating nondeterminism by batch-invariant kernels (Thinking Machines, 2025).

Legend: M rows, K inner, N columns.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from .backend import WIDE, Backend, Build, Choice, choice, jit, runs_triton, tl
from .checks import FLOATS, expect, expect_dtype, expect_shape
from .row_grouping import ONEDNN, TOGETHER, alike, by_parts

TILE = 32
_BLOCK = 64
_STEPS = {torch.float32: 16, torch.bfloat16: 32, torch.float16: 32}  # of K


def invariant_matmul(
    a_MK: Tensor,
    b_KN: Tensor,
    out_dtype: torch.dtype,
    *,
    bias_N: Tensor | None = None,
    tile: int = TILE,
    backend: Backend | None = None,
) -> Tensor:
    """[M, N] in `out_dtype`, summed in float32. Any strides. Raises BadInput.

    `tile`: rows that belong together, for torch: bits may depend on it. Triton has its own.
    """
    if not _fits(a_MK, b_KN, bias_N, out_dtype, tile):
        _refuse(a_MK, b_KN, bias_N, out_dtype, tile)
    if (backend is not None or a_MK.is_cuda) and runs_triton(backend, choose(a_MK), a_MK.device):
        return _launched(a_MK, b_KN, bias_N, out_dtype)
    return _reference(a_MK, b_KN, bias_N, out_dtype, tile)


def invariant_linear(x_K: Tensor, weight_NK: Tensor, bias_N: Tensor | None, tile: int) -> Tensor:
    """[..., K] to [..., N] with weights as a linear layer keeps them; `tile` lines of x have the bits they have alone.

    One tile on a CPU goes straight to its product: checks would cost a small model much. Raises BadInput.
    """
    if x_K.is_cpu and x_K.numel() == tile * weight_NK.shape[1]:
        return _linear(x_K, weight_NK, bias_N, tile)
    lines_MK = x_K.reshape(-1, x_K.shape[-1])
    made_MN = invariant_matmul(lines_MK, weight_NK.t(), x_K.dtype, bias_N=bias_N, tile=tile)
    return made_MN.view(*x_K.shape[:-1], made_MN.shape[-1])


def choose(a_MK: Tensor) -> Choice:
    return choice(a_MK.device, [])


def _fits(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype, tile: int) -> bool:
    """All that `_refuse` asks, without a word."""
    return (
        a.ndim == b.ndim == 2
        and a.shape[1] == b.shape[0]
        and a.dtype == b.dtype
        and a.dtype in FLOATS
        and out_dtype in FLOATS
        and a.device == b.device
        and tile > 0
        and (bias is None or (bias.shape == b.shape[1:] and bias.dtype == b.dtype and bias.device == b.device))
    )


def _refuse(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype, tile: int) -> None:
    expect_shape("a", a, (None, None))
    expect_shape("b", b, (a.shape[1], None))
    expect_dtype("a", a.dtype, *FLOATS)
    for name, tensor in (("b", b), ("bias", bias)):
        if tensor is not None:
            expect_dtype(name, tensor.dtype, a.dtype)
            expect(tensor.device == a.device, f"{name} is on {tensor.device}, a on {a.device}")
    if bias is not None:
        expect_shape("bias", bias, (b.shape[1],))
    expect_dtype("out_dtype", out_dtype, *FLOATS)
    expect(tile > 0, f"tile is {tile}, wanted at least 1")


# ---- reference ----

_ONEDNN_LINEAR = torch.ops.mkldnn._linear_pointwise.default if ONEDNN else None
_ALIGNED = 64  # bytes
_LOADED = 8  # of K at once, by oneDNN on CPUs with AMX: past a row's end too, and 0 times a neighbour's NaN is NaN
_FEW = 16  # rows of a tile from which oneDNN is worth its call


def _reference(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype, tile: int) -> Tensor:
    """Tile by tile, or as many at once as make no difference."""
    rows = a.shape[0]
    if a.dtype != out_dtype:
        dtype = torch.promote_types(a.dtype, out_dtype)
        a, b, bias = a.to(dtype), b.to(dtype), bias if bias is None else bias.to(dtype)
    if rows % tile:
        a = torch.cat([a, a.new_zeros(-rows % tile, a.shape[1])])
    made = _tiles(a.contiguous(), b, bias, tile)
    made = made[:rows] if rows % tile else made
    return made if made.dtype == out_dtype else made.to(out_dtype)


def _tiles(a: Tensor, b: Tensor, bias: Tensor | None, tile: int) -> Tensor:
    (rows, inner), columns = a.shape, b.shape[1]
    if rows <= tile:
        return _product(a, b, bias, tile)
    asked = (tile, inner, columns, b.stride(), bias is not None, a.dtype, torch.get_num_threads())
    together = a.device.type == "cpu" and _together(*asked)
    return by_parts(lambda part: _product(part, b, bias, tile), a, tile, together)


def _product(a: Tensor, b: Tensor, bias: Tensor | None, tile: int) -> Tensor:
    if b.stride(0) == 1:
        return _linear(a, b.t(), bias, tile)
    if short := _short(a):
        a, b = F.pad(a, (0, short)), F.pad(b, (0, 0, 0, short))
    a = _aligned(a)
    return a @ b if bias is None else torch.addmm(bias, a, b)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, tile: int) -> Tensor:
    """oneDNN uses the widest instructions on every CPU, torch's own product not on all."""
    if short := _short(x):
        x, weight = F.pad(x, (0, short)), F.pad(weight, (0, short))
    x = _aligned(x)
    if tile >= _FEW and _ONEDNN_LINEAR and x.is_cpu and x.dtype is torch.float32 and x.numel():
        made: Tensor = _ONEDNN_LINEAR(x, weight, bias, "none", [], "")
        return made
    return F.linear(x, weight, bias)


def _short(x: Tensor) -> int:
    """Zeros that K lacks, for a product that reads no other row."""
    return -x.shape[-1] % _LOADED if x.element_size() == 2 and x.is_cpu else 0


def _aligned(x: Tensor) -> Tensor:
    """A library's product feels where in memory its lines begin."""
    return x.clone() if x.data_ptr() % _ALIGNED else x


@lru_cache(maxsize=256)
def _together(
    tile: int, inner: int, columns: int, strides: tuple[int, int], biased: bool, dtype: torch.dtype, threads: int
) -> bool:
    """Whether tiles of this size may share a call, with drawn numbers; `threads` because the answer depends on them."""
    dice = torch.Generator().manual_seed(0)
    a = torch.randn(TOGETHER * tile, inner, generator=dice).to(dtype)
    b = torch.empty_strided((inner, columns), strides, dtype=dtype).copy_(torch.randn(inner, columns, generator=dice))
    bias = torch.randn(columns, generator=dice).to(dtype) if biased else None
    return alike(lambda part: _product(part, b, bias, tile), a, tile)


# ---- Triton ----


@jit
def _kernel(
    a: tl.tensor, b: tl.tensor, bias: tl.tensor, out: tl.tensor,
    rows: tl.tensor, columns: tl.tensor, inner: tl.tensor,
    a_row: tl.tensor, a_inner: tl.tensor, b_inner: tl.tensor, b_column: tl.tensor,
    BIASED: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, WIDE: tl.constexpr,
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
    if BIASED:
        total += tl.load(bias + column, column < columns, 0.0).to(tl.float32)[None]
    inside = (row[:, None] < rows) & (column[None] < columns)
    tl.store(out + row.to(tl.int64)[:, None] * columns + column[None], total.to(out.dtype.element_ty), inside)


def _launched(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype) -> Tensor:
    (rows, inner), columns = a.shape, b.shape[1]
    out = torch.empty((rows, columns), dtype=out_dtype, device=a.device)
    if out.numel():
        _kernel[(-(-rows // _BLOCK), -(-columns // _BLOCK))](
            a,
            b,
            b if bias is None else bias.contiguous(),
            out,
            rows,
            columns,
            inner,
            *a.stride(),
            *b.stride(),
            BIASED=bias is not None,
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
            dict.fromkeys(("a", "b", "bias", "out"), f"*{name}") | dict.fromkeys(sizes, "i32"),
            {"BIASED": True, "BLOCK": _BLOCK, "STEP": _STEPS[dtype], "WIDE": False, **more},
            4,
            name + label,
            whole,
        )
        for name, dtype, more, label, whole in (
            ("bf16", torch.bfloat16, {"a_inner": 1, "b_inner": 1}, "", sizes),
            ("fp32", torch.float32, {}, ", odd strides", ()),
        )
    ]
