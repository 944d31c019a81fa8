"""Products and sums whose rows do not feel each other: bit for bit on the CPU and through the interpreter."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from worldroom.kernels.backend import Backend
from worldroom.kernels.checks import BadInput
from worldroom.kernels.invariant_matmul import invariant_linear, invariant_matmul
from worldroom.kernels.invariant_reduce import Reduction, invariant_reduce
from worldroom.tests.kernel_checks import DTYPES, agree, drawn, poisoned

ROWS = (1, 2, 3, 5, 8, 16)
FP32, BF16 = torch.float32, torch.bfloat16


@given(
    st.tuples(st.integers(0, 80), st.integers(1, 70), st.integers(1, 70)),
    st.sampled_from(DTYPES),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=12, deadline=None)
def test_the_product_is_the_formula(
    size: tuple[int, int, int], dtype: torch.dtype, out_dtype: torch.dtype, turned: bool, seed: int
) -> None:
    rows, inner, columns = size
    a, b = drawn((rows, inner), seed).to(dtype), drawn((columns, inner), seed + 1).to(dtype).T / inner**0.5
    a = a.T.contiguous().T if turned else a
    exact = a.double() @ b.double()
    with poisoned():
        made = invariant_matmul(a, b, out_dtype, backend=Backend.TRITON)
    coarser = 8 if {dtype, out_dtype} == set(DTYPES[1:]) else 1
    agree(made, exact.to(out_dtype), 4)
    agree(invariant_matmul(a, b, out_dtype), exact.to(out_dtype), 4 * coarser)


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("dtype", [FP32, BF16])
@pytest.mark.parametrize(("inner", "columns"), [(192, 96), (37, 19)])
def test_rows_of_a_product_do_not_feel_each_other(
    backend: Backend, dtype: torch.dtype, inner: int, columns: int
) -> None:
    tokens = 40 if backend is Backend.TORCH else 5
    a, b = drawn((16 * tokens, inner), 0).to(dtype), drawn((columns, inner), 1).to(dtype).T

    def rows(of: Tensor) -> Tensor:
        return invariant_matmul(of, b, dtype, backend=backend)

    together = rows(a)
    for count in ROWS:
        assert torch.equal(rows(a[: count * tokens]), together[: count * tokens])
    # numpy's product, which interpreted kernels call, feels a row's place on CPUs with AVX-512
    for alone in (0, 1, 7, 31, 33, 79) if backend is Backend.TORCH else (0,):
        assert torch.equal(rows(a[alone : alone + 1])[0], together[alone])
    neighbours = a.clone()
    neighbours[1:] = float("nan")
    assert torch.equal(rows(neighbours)[0], together[0])


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("tile", "inner", "columns"), [(1, 105, 384), (3, 96, 160), (40, 455, 160), (43, 160, 480)])
def test_tiles_that_share_a_call_are_tiles_alone(tile: int, inner: int, columns: int, biased: bool) -> None:
    """Weights as a linear layer keeps them; 17 tiles are more than one call takes."""
    a, b = drawn((17 * tile, inner), 0), drawn((columns, inner), 1).T / inner**0.5
    bias = drawn((columns,), 2) if biased else None
    alone = [invariant_matmul(part, b, FP32, bias_N=bias, tile=tile) for part in a.split(tile)]
    for count in range(1, 18):
        together = invariant_matmul(a[: count * tile], b, FP32, bias_N=bias, tile=tile)
        assert torch.equal(together, torch.cat(alone[:count])), f"{count} tiles"
        layer = invariant_linear(a[: count * tile].reshape(count, 1, tile, inner), b.T, bias, tile)
        assert torch.equal(layer.reshape(-1, columns), together), f"{count} tiles of any shape"
    exact = a.double() @ b.double() + (0 if bias is None else bias.double())
    agree(torch.cat(alone), exact.float(), 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bias_is_added_before_the_rounding(dtype: torch.dtype) -> None:
    a, b, bias = drawn((70, 37), 0).to(dtype), drawn((37, 66), 1).to(dtype), drawn((66,), 2).to(dtype)
    exact = a.double() @ b.double() + bias.double()
    with poisoned():
        agree(invariant_matmul(a, b, FP32, bias_N=bias, backend=Backend.TRITON), exact.float(), 4)
    agree(invariant_matmul(a, b, FP32, bias_N=bias), exact.float(), 4)


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 600)),
    st.sampled_from(DTYPES),
    st.sampled_from(DTYPES),
    st.sampled_from(Reduction),
    st.integers(0, 99),
)
@settings(max_examples=15, deadline=None)
def test_a_reduction_is_the_same_bits_from_both(
    size: tuple[int, int], dtype: torch.dtype, out_dtype: torch.dtype, reduction: Reduction, seed: int
) -> None:
    x = drawn((size[0], 2, size[1]), seed).to(dtype)[:, 1]
    with poisoned():
        made = invariant_reduce(x, reduction, FP32, backend=Backend.TRITON)
    assert torch.equal(made, invariant_reduce(x, reduction, FP32))
    exact = x.double().sum(-1) if reduction is Reduction.SUM else x.double().mean(-1)
    assert torch.allclose(made.double(), exact, rtol=1e-5, atol=1e-4)
    agree(invariant_reduce(x, reduction, out_dtype, backend=Backend.TRITON), made.to(out_dtype))


@pytest.mark.parametrize("backend", Backend)
def test_rows_of_a_reduction_do_not_feel_each_other(backend: Backend) -> None:
    x = drawn((16, 3, 1000), 0)
    together = invariant_reduce(x, Reduction.MEAN, FP32, backend=backend)
    for count in ROWS:
        assert torch.equal(invariant_reduce(x[:count], Reduction.MEAN, FP32, backend=backend), together[:count])
    assert torch.equal(invariant_reduce(x[4, 1], Reduction.MEAN, FP32, backend=backend), together[4, 1])


def test_literal_values() -> None:
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert invariant_matmul(a, a, FP32).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    assert invariant_matmul(a, a, FP32, bias_N=a[0], tile=1).tolist() == [[8.0, 12.0], [16.0, 24.0]]
    assert invariant_matmul(a[:0], a, BF16).shape == (0, 2)
    assert invariant_reduce(a, Reduction.SUM, FP32).tolist() == [3.0, 7.0]
    assert invariant_reduce(a[:, :0], Reduction.SUM, FP32).tolist() == [0.0, 0.0]


def test_refuses_what_does_not_fit_with_the_numbers() -> None:
    a = torch.zeros(2, 3)
    with pytest.raises(BadInput, match=r"b is \[2, 3\], wanted \[3, 'any'\]"):
        invariant_matmul(a, a, FP32)
    with pytest.raises(BadInput, match=r"b is torch\.bfloat16, wanted torch\.float32"):
        invariant_matmul(a, a.T.to(BF16), FP32)
    with pytest.raises(BadInput, match=r"bias is \[3\], wanted \[2\]"):
        invariant_matmul(a, a.T, FP32, bias_N=a[0])
    with pytest.raises(BadInput, match=r"b is \[2, 2\], wanted \[3, 'any'\]"):
        invariant_linear(a[None], a[:, :2], None, 1)
    with pytest.raises(BadInput, match="tile is 0, wanted at least 1"):
        invariant_matmul(a, a.T, FP32, tile=0)
    with pytest.raises(BadInput, match=r"out_dtype is torch\.int8, wanted torch\.float32 or torch\.bfloat16 or"):
        invariant_reduce(a, Reduction.SUM, torch.int8)
    with pytest.raises(BadInput, match="the mean of 0 values"):
        invariant_reduce(a[:, :0], Reduction.MEAN, FP32)
