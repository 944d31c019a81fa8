"""Norm, rotation and the write into the slab: the kernel against the formula; nothing else in the slab moves."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from worldroom.kernels.backend import Backend
from worldroom.kernels.checks import BadInput
from worldroom.kernels.qk_norm_rope import Norms, Staged, qk_norm_rope
from worldroom.tests.kernel_checks import DTYPES, agree, drawn, poisoned

FP32 = torch.float32


def projections(rows: int, tokens: int, heads: int, width: int, dtype: torch.dtype, seed: int) -> tuple[Tensor, ...]:
    """q, k, v as parts of one projection."""
    whole = drawn((rows, tokens, 3, heads, width), seed).to(dtype)
    return tuple(whole.unbind(2))


def angles(rows: int, tokens: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    at = drawn((rows, tokens, width // 2), seed) * 9
    return at.cos(), at.sin()


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.sampled_from((2, 6, 16))),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.booleans(),
    st.sampled_from((None, True, False)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=24, deadline=None)
def test_the_kernel_is_the_formula(
    size: tuple[int, int, int, int],
    dtype: torch.dtype,
    each: bool,
    weighs: bool,
    plain: bool | None,
    fewer: bool,
    halves: bool,
    seed: int,
) -> None:
    """`fewer`: keys of one head and of the first token alone."""
    rows, tokens, heads, width = size
    q, k, v = projections(rows, tokens, heads, width, dtype, seed)
    keys, groups = (1, 1) if fewer else (tokens, heads)
    k, v = k[:, :keys, :groups], v[:, :keys, :groups]
    cos, sin = angles(rows, tokens, width, seed + 1)
    weights = (drawn((heads, width), seed + 2).to(dtype), drawn((groups, width), seed + 3).to(dtype))
    norms = Norms(*weights, each_head=each) if weighs else Norms(each_head=each)
    entries = torch.tensor([4, 0, 2][:rows], dtype=torch.int32)
    slabs = [torch.full((5, 2, 2, keys + 1, groups, width), 7.0, dtype=dtype) for _ in range(2)]
    staged = [None if plain is None else Staged(slab[:, 1], entries, plain) for slab in slabs]
    with poisoned():
        made = qk_norm_rope(q, k, v, (cos, sin), norms, staged[0], halves=halves, backend=Backend.TRITON)
    by_torch = qk_norm_rope(q, k, v, (cos, sin), norms, staged[1], halves=halves)
    wanted = [
        straight(q, norms.q_HD, norms, cos, sin, halves),
        straight(k, norms.k_GD, norms, cos[:, :keys], sin[:, :keys], halves),
    ]
    for x, y, (_, exact) in zip(made, by_torch, wanted, strict=True):
        agree(x, exact.to(dtype), 4)
        agree(y, exact.to(dtype), 4)
    for slab in slabs:
        expected = torch.full_like(slab, 7.0)
        if plain is not None:
            for row, entry in enumerate(entries.tolist()):
                expected[entry, 1, 0, :keys] = wanted[1][0 if plain else 1][row].to(dtype)
                expected[entry, 1, 1, :keys] = v[row]
        agree(slab, expected, 4)


def straight(
    x: Tensor, weight: Tensor | None, norms: Norms, cos: Tensor, sin: Tensor, halves: bool
) -> tuple[Tensor, Tensor]:
    """Normed and rotated, in float64 and with complex numbers."""
    x = x.double()
    size = (x**2).mean(-1, keepdim=True) if norms.each_head else (x**2).flatten(2).mean(-1)[..., None, None]
    x = x / (size + norms.eps).sqrt()
    x = x if weight is None else x * weight.double()
    turn = torch.complex(cos.double(), sin.double())[:, :, None]
    width = x.shape[-1]
    if halves:
        pairs = torch.complex(x[..., : width // 2], x[..., width // 2 :]) * turn
        return x, torch.cat((pairs.real, pairs.imag), -1)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * turn
    return x, torch.view_as_real(pairs).flatten(-2)


@pytest.mark.parametrize("backend", Backend)
def test_rows_do_not_feel_each_other(backend: Backend) -> None:
    q, k, v = projections(16, 3, 2, 4, torch.bfloat16, 0)
    cos, sin = angles(16, 3, 4, 1)

    def made(rows: slice) -> Tensor:
        return torch.stack(
            qk_norm_rope(q[rows], k[rows], v[rows], (cos[rows], sin[rows]), Norms(), None, backend=backend)
        )

    together = made(slice(0, 16))
    for count in (1, 2, 5):
        assert torch.equal(made(slice(0, count)), together[:, :count])
    assert torch.equal(made(slice(9, 10))[:, 0], together[:, 9])


def test_literal_values() -> None:
    """Size 5 / sqrt 2 over a pair (3, 4); a quarter turn."""
    x = torch.tensor([[[[3.0, 4.0]]]])
    zero, one = torch.zeros(1, 1, 1), torch.ones(1, 1, 1)
    q, k = qk_norm_rope(x, x, x, (zero, one), Norms(eps=0.0), None)
    root = 2**0.5
    assert q.flatten().tolist() == pytest.approx([-0.8 * root, 0.6 * root], abs=1e-6) and torch.equal(q, k)


def test_keys_of_fewer_heads_turn_as_the_first_tokens() -> None:
    """(1, 0, 1, 0) has size 1 / sqrt 2; pairs of halves (1, 1) and (0, 0); token 0 stands still, token 1 turns half."""
    q, k = torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(1, 2, 2, 4), torch.tensor([1.0, 0.0, 1.0, 0.0]).view(1, 1, 1, 4)
    turn = torch.tensor([[[1.0, 1.0], [-1.0, -1.0]]]), torch.zeros(1, 2, 2)
    q, k = qk_norm_rope(q, k, k, turn, Norms(each_head=True, eps=0.0), None, halves=True)
    root = 2**0.5
    assert k.flatten().tolist() == pytest.approx([root, 0.0, root, 0.0], abs=1e-6)
    assert q[0, 1, 1].tolist() == pytest.approx([-root, 0.0, -root, 0.0], abs=1e-6)


def test_refuses_what_does_not_fit_with_the_numbers() -> None:
    q = torch.zeros(2, 4, 1, 2)
    turn = torch.zeros(2, 4, 1), torch.zeros(2, 4, 1)
    slab, entries = torch.zeros(3, 2, 3, 1, 2), torch.zeros(2, dtype=torch.int32)
    with pytest.raises(BadInput, match="4 tokens do not fit an entry of 3"):
        qk_norm_rope(q, q, q, turn, Norms(), Staged(slab, entries, True))
    with pytest.raises(BadInput, match=r"entries is torch\.int64, wanted torch\.int32"):
        qk_norm_rope(
            q[:, :3], q[:, :3], q[:, :3], (turn[0][:, :3], turn[1][:, :3]), Norms(), Staged(slab, entries.long(), True)
        )
    with pytest.raises(BadInput, match=r"sin is \[2, 4, 2\], wanted \[2, 4, 1\]"):
        qk_norm_rope(q, q, q, (turn[0], torch.zeros(2, 4, 2)), Norms(), None)
    with pytest.raises(BadInput, match="4 tokens have keys, 2 have queries"):
        qk_norm_rope(q[:, :2], q, q, (turn[0][:, :2], turn[1][:, :2]), Norms(), None)
    with pytest.raises(BadInput, match=r"k is torch\.float16"):
        qk_norm_rope(q, q.half(), q, turn, Norms(), None)
