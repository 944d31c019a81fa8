"""AdaLN and gated residual: the kernel against the formula, whatever the shapes, strides and dtypes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from worldroom.kernels.backend import Backend
from worldroom.kernels.checks import BadInput
from worldroom.kernels.norm_modulate import Norm, choose, gate_norm_modulate, gate_residual, norm_modulate
from worldroom.tests.kernel_checks import DTYPES, agree, drawn, poisoned

sizes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 70))


@given(sizes, st.sampled_from(DTYPES), st.sampled_from(Norm), st.booleans(), st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_the_kernel_is_the_formula(
    size: tuple[int, int, int, int], dtype: torch.dtype, norm: Norm, gates: bool, seed: int
) -> None:
    rows, frames, tokens, width = size
    x, y = (drawn((rows, frames * tokens, width + 3), seed + n).to(dtype)[..., 3:] for n in (0, 1))
    gate, scale, shift = drawn((rows, frames, 3, width), seed + 2).unbind(2)
    given_gate = gate if gates else None
    wanted = gate_norm_modulate(x, y, given_gate, scale, shift, norm=norm)
    with poisoned():
        h, z = gate_norm_modulate(x, y, given_gate, scale, shift, norm=norm, backend=Backend.TRITON)
        alone = norm_modulate(h, scale, shift, norm=norm, backend=Backend.TRITON)
        added = gate_residual(x, y, given_gate, backend=Backend.TRITON)
    agree(h, wanted[0])
    agree(z, wanted[1])
    assert torch.equal(alone, z) and torch.equal(added, h)


@given(sizes, st.sampled_from(DTYPES), st.sampled_from(Norm), st.booleans(), st.integers(0, 99))
@settings(max_examples=8, deadline=None)
def test_a_norm_with_a_weight_of_its_own_is_the_formula(
    size: tuple[int, int, int, int], dtype: torch.dtype, norm: Norm, shifts: bool, seed: int
) -> None:
    rows, frames, tokens, width = size
    x, y = (drawn((rows, frames * tokens, width), seed + n).to(dtype) for n in (0, 1))
    weight, bias = drawn((2, width), seed + 2).expand(rows, 1, 2, width).unbind(2)
    shift = bias if shifts else None
    h = x.double()
    if norm is Norm.LAYER:
        h = h - h.mean(-1, keepdim=True)
    exact = h / (h.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight.double() + (bias.double() if shifts else 0)
    with poisoned():
        made = norm_modulate(x, weight, shift, norm=norm, learned=True, backend=Backend.TRITON)
        _, after = gate_norm_modulate(x, y, None, weight, shift, norm=norm, learned=True, backend=Backend.TRITON)
    agree(made, exact.to(dtype), 4)
    agree(norm_modulate(x, weight, shift, norm=norm, learned=True), exact.to(dtype), 4)
    agree(after, gate_norm_modulate(x, y, None, weight, shift, norm=norm, learned=True)[1], 4)


def test_literal_values() -> None:
    x = torch.tensor([[[1.0, 3.0], [2.0, 6.0]]])
    scale, shift = torch.tensor([[[0.0, 1.0]]]), torch.tensor([[[10.0, 0.0]]])
    assert torch.allclose(norm_modulate(x, scale, shift), torch.tensor([[[9.0, 2.0], [9.0, 2.0]]]), atol=1e-5)
    assert torch.allclose(norm_modulate(x, shift, None, learned=True), torch.tensor([[[-10.0, 0.0], [-10.0, 0.0]]]))
    gate = torch.tensor([[[0.5, 0.0]]])
    assert gate_residual(x, x, gate).tolist() == [[[1.5, 3.0], [3.0, 6.0]]]
    assert gate_residual(x, x, None).tolist() == [[[2.0, 6.0], [4.0, 12.0]]]


def test_a_modulation_may_be_a_broadcast_view() -> None:
    x, one = drawn((2, 4, 8), 0), drawn((1, 1, 8), 1).expand(2, 2, 8)
    assert torch.equal(norm_modulate(x, one, one), norm_modulate(x, one.contiguous(), one.contiguous()))
    agree(norm_modulate(x, one, one, backend=Backend.TRITON), norm_modulate(x, one, one))


def test_says_why_torch_runs() -> None:
    chosen = choose(torch.zeros(1, 1, 8))
    assert (chosen.backend, chosen.reason) == (Backend.TORCH, "device is cpu")


def test_refuses_what_does_not_fit_with_the_numbers() -> None:
    x, m = torch.zeros(2, 6, 8), torch.zeros(2, 3, 8)
    with pytest.raises(BadInput, match=r"shift is \[2, 2, 8\], wanted \[2, 3, 8\]"):
        norm_modulate(x, m, m[:, :2])
    with pytest.raises(BadInput, match="6 tokens do not split into 4 frames"):
        norm_modulate(x, torch.zeros(2, 4, 8), torch.zeros(2, 4, 8))
    with pytest.raises(BadInput, match=r"x has strides \(48, 1, 6\)"):
        norm_modulate(torch.zeros(2, 8, 6).transpose(1, 2), m, m)
    with pytest.raises(BadInput, match=r"y is torch\.float64"):
        gate_residual(x, x.double(), None)
