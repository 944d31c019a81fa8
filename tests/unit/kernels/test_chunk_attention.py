"""Attention over a slab pool: the kernel against the formula at any ages, rows that do not feel each other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from worldroom.kernels.backend import Backend
from worldroom.kernels.checks import BadInput
from worldroom.kernels.chunk_attention import FP8, AttendedPast, chunk_attention, turned
from worldroom.tests.kernel_checks import agree, drawn, poisoned

FP32, BF16 = torch.float32, torch.bfloat16
ENTRIES, SLAB_TOKENS = 7, 5


def pool(dtype: torch.dtype, groups: int, width: int, seed: int) -> tuple[Tensor, Tensor | None]:
    """A slab cut out of a larger one, and its scales."""
    whole = drawn((ENTRIES, 3, 2, SLAB_TOKENS, groups, width), seed)
    scales = drawn((ENTRIES, 2, groups, SLAB_TOKENS), seed + 1).abs().transpose(2, 3) / 50 + 0.01
    scales = scales if seed % 2 else scales[:, :, :1].expand(-1, -1, SLAB_TOKENS, -1)
    if dtype is torch.int8:
        return (whole * 50).clamp(-127, 127).to(dtype)[:, 1], scales
    if dtype is FP8:
        return (whole * 50).to(dtype)[:, 1], scales
    return whole.to(dtype)[:, 1], None


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, AttendedPast | None, tuple[Tensor, Tensor] | None]:
    rows, tokens, groups = draw(st.integers(1, 3)), draw(st.integers(1, 20)), draw(st.integers(1, 2))
    heads, width = groups * draw(st.integers(1, 2)), draw(st.sampled_from((8, 16, 20)))
    dtype = draw(st.sampled_from((FP32, BF16)))
    kept = draw(st.sampled_from((dtype, torch.int8, FP8)))
    seen, seed = draw(st.integers(1, 4)), draw(st.integers(0, 99))
    slab, scales = pool(kept, groups, width, seed)
    lengths = draw(
        st.lists(st.lists(st.integers(0, SLAB_TOKENS), min_size=seen, max_size=seen), min_size=rows, max_size=rows)
    )
    entries = torch.randint(0, ENTRIES, (rows, seen), dtype=torch.int32).where(torch.tensor(lengths) > 0, -1)
    angles = drawn((seen * SLAB_TOKENS, width // 2), seed)
    turn = (angles.cos(), angles.sin()) if draw(st.booleans()) else None
    past = AttendedPast(slab, entries.to(torch.int32), torch.tensor(lengths, dtype=torch.int32), turn, scales)
    own = tuple(drawn((rows, draw(st.integers(1, 9)), groups, width), seed + n).to(dtype) for n in (2,))
    q = drawn((rows, heads, tokens, width), seed + 4).to(dtype).transpose(1, 2)
    which = draw(st.sampled_from(("both", "past", "own")))
    return q, past if which != "own" else None, (own[0], own[0].flip(1)) if which != "past" else None


@given(cases())
@settings(max_examples=12, deadline=None)
def test_the_kernel_is_the_formula(case: tuple[Tensor, AttendedPast | None, tuple[Tensor, Tensor] | None]) -> None:
    q, past, own = case
    with poisoned():
        made = chunk_attention(q, past, own, backend=Backend.TRITON)
    wanted = torch.stack([straight(q[row].double(), *seen(row, past, own)) for row in range(len(q))])
    agree(made, wanted.to(q.dtype), 4)
    agree(chunk_attention(q, past, own), wanted.to(q.dtype), 4)


def seen(row: int, past: AttendedPast | None, own: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
    """Keys and values of one row token by token, in float64."""
    keys, values = [], []
    if past is not None:
        for j, (entry, length) in enumerate(
            zip(past.entries_BE[row].tolist(), past.lengths_BE[row].tolist(), strict=True)
        ):
            for token in range(length):
                k, v = (past.slab_E2SGD[entry, n, token].double() for n in (0, 1))
                if past.scales_E2SG is not None:
                    k, v = (x * past.scales_E2SG[entry, n, token, :, None] for n, x in enumerate((k, v)))
                if past.turn is not None:
                    cos, sin = (t[j * SLAB_TOKENS + token].double() for t in past.turn)
                    pairs = torch.view_as_complex(k.reshape(len(k), -1, 2)) * torch.complex(cos, sin)
                    k = torch.view_as_real(pairs).flatten(-2)
                keys.append(k)
                values.append(v)
    if own is not None:
        keys += own[0][row].double().unbind()
        values += own[1][row].double().unbind()
    return (torch.stack(keys), torch.stack(values)) if keys else (torch.zeros(0), torch.zeros(0))


def straight(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if not len(k):
        return torch.zeros_like(q)
    services = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(services, 1), v.repeat_interleave(services, 1)
    weight = torch.einsum("thd,shd->hts", q, k).div(q.shape[2] ** 0.5).softmax(-1)
    return torch.einsum("hts,shd->thd", weight, v)


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("dtype", [FP32, BF16])
def test_rows_do_not_feel_each_other(backend: Backend, dtype: torch.dtype) -> None:
    """Sixteen sessions of every age in one call, against each alone and against smaller batches."""
    slab, _ = pool(dtype, 2, 16, 0)
    lengths = torch.tensor([[SLAB_TOKENS * (j < row % 4) for j in range(3)] for row in range(16)], dtype=torch.int32)
    entries = (torch.arange(48, dtype=torch.int32).reshape(16, 3) % ENTRIES).where(lengths > 0, -1).to(torch.int32)
    q, k, v = (drawn((16, 4, 2, 16), seed).to(dtype) for seed in (1, 2, 3))

    def attended(rows: slice) -> Tensor:
        past = AttendedPast(slab, entries[rows], lengths[rows])
        return chunk_attention(q[rows], past, (k[rows], v[rows]), backend=backend)

    together = attended(slice(0, 16))
    for count in (1, 2, 3, 8):
        assert torch.equal(attended(slice(0, count)), together[:count])
    for row in (5, 15):
        assert torch.equal(attended(slice(row, row + 1))[0], together[row])


@pytest.mark.parametrize("backend", Backend)
def test_masked_entries_are_never_read(backend: Backend) -> None:
    slab, _ = pool(FP32, 1, 16, 0)
    slab[3] = float("nan")
    slab[2, :, 2:] = float("nan")
    table = torch.tensor([[1, 3, 2]], dtype=torch.int32), torch.tensor([[5, 0, 2]], dtype=torch.int32)
    q = drawn((1, 4, 1, 16), 1)
    clean = torch.cat([slab[1], slab[2, :, :2]], 1)
    made = chunk_attention(q, AttendedPast(slab, *table), None, backend=backend)
    agree(made[0], straight(q[0], clean[0], clean[1]), 4)


def test_literal_values() -> None:
    """Equal scores: the mean of the values. A quarter turn: the pair (1, 0) becomes (0, 1)."""
    zero = torch.zeros(1, 1, 1, 2)
    v = torch.tensor([[[[1.0, 0.0]], [[3.0, 2.0]]]])
    assert chunk_attention(zero, None, (torch.zeros_like(v), v)).tolist() == [[[[2.0, 1.0]]]]
    assert turned(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[0.0]]), torch.tensor([[1.0]])).tolist() == [[[0.0, 1.0]]]


def test_long_queries_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k = drawn((1, 9, 2, 8), 0).to(BF16), drawn((1, 5, 2, 8), 1).to(BF16)
    whole = chunk_attention(q, None, (k, k))
    monkeypatch.setattr("worldroom.kernels.chunk_attention._SCORES", 20)
    agree(chunk_attention(q, None, (k, k)), whole)


def test_refuses_what_does_not_fit_with_the_numbers() -> None:
    slab, _ = pool(FP32, 2, 16, 0)
    q, table = torch.zeros(1, 4, 2, 16), torch.zeros(1, 3, dtype=torch.int32)
    with pytest.raises(BadInput, match="a length is 6, an entry has 5 tokens"):
        chunk_attention(q, AttendedPast(slab, table, table + 6), None)
    with pytest.raises(BadInput, match=r"an entry is outside 0\.\.6"):
        chunk_attention(q, AttendedPast(slab, table + 7, table + 5), None)
    with pytest.raises(BadInput, match=r"a torch\.int8 slab needs scales"):
        chunk_attention(q, AttendedPast(slab.to(torch.int8), table, table), None)
    with pytest.raises(BadInput, match="3 query heads do not split over 2 heads of keys"):
        chunk_attention(torch.zeros(1, 4, 3, 16), AttendedPast(slab, table, table), None)
    with pytest.raises(BadInput, match="neither past nor own"):
        chunk_attention(q, None, None)
    with pytest.raises(BadInput, match=r"cos is \[15, 7\], wanted \[15, 8\]"):
        chunk_attention(q, AttendedPast(slab, table, table, (torch.zeros(15, 7), torch.zeros(15, 8))), None)
