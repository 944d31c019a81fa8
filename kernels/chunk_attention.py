"""Attention of a chunk over [sink, window, itself]: a past read where it lies in a slab pool, rows of any age at once.

    slab [entries, 2, S tokens, G, D]    2: keys, values; an entry is one chunk of one session
    row b reads slab[entries[b, 0]], slab[entries[b, 1]], ..  oldest first, lengths[b, j] tokens each; then itself
    out = softmax(q k^T / sqrt(D)) v     over all of them; length 0: no entry; a row that sees nothing gets zeros

Keys kept plain are rotated when read, by their place in the window (j-th entry, token t: place j * S + t). int8 and fp8
(e4m3) entries have scales: key = stored * scale of its token and head (a scale an entry and head: a view that repeats
it). Softmax and sums are float32; nothing is gathered or copied.
Rows never meet: a row's bits do not depend on the batch. Moved: q, out, and each row's own past, 2 * S_b * G * D
values; FLOP: 4 * T * S_b * H * D of every row b, S_b = what it sees; masked entries cost nothing.
Sources: FlashAttention-2 (2307.08691); paged KV (2309.06180); sink and window: StreamingLLM (2309.17453).

Legend: B rows, T tokens of a chunk, S of an entry, H query heads, G heads of keys (H = G x n), D width, E entries a row
may see, P = D / 2 pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from . import attention_kernel
from .backend import Backend, Choice, choice, runs_triton
from .checks import expect, expect_dtype, expect_floats, expect_shape

FP8 = torch.float8_e4m3fn
_SCORES = 16 * 2**20  # scores the reference holds at once


@dataclass(frozen=True, slots=True)
class AttendedPast:
    """What rows see before themselves. `entries_BE`, `lengths_BE` int32; see the module's docstring.

    `turn`: cos and sin [E * S, P] for keys kept plain. `scales_E2SG`: float32, any strides, for int8 and fp8 slabs.
    """

    slab_E2SGD: Tensor
    entries_BE: Tensor
    lengths_BE: Tensor
    turn: tuple[Tensor, Tensor] | None = None
    scales_E2SG: Tensor | None = None


def chunk_attention(
    q_BTHD: Tensor, past: AttendedPast | None, own: tuple[Tensor, Tensor] | None, *, backend: Backend | None = None
) -> Tensor:
    """[B, T, H, D]. `own`: keys and values [B, T', G, D] of the chunk itself, rotated. Raises BadInput."""
    _check(q_BTHD, past, own)
    if runs_triton(backend, choose(q_BTHD), q_BTHD.device):
        tensors = None if past is None else (past.slab_E2SGD, past.entries_BE, past.lengths_BE)
        turn, scales = (None, None) if past is None else (past.turn, past.scales_E2SG)
        return attention_kernel.launched(q_BTHD, tensors, turn, scales, own)
    rows = [_reference(q, *_seen(q, row, past, own)) for row, q in enumerate(q_BTHD)]
    if len(rows) == 1:
        return rows[0][None]
    return torch.stack(rows) if rows else torch.empty_like(q_BTHD)


def choose(q_BTHD: Tensor) -> Choice:
    """Triton on a GPU for the head widths its tiles have."""
    width = q_BTHD.shape[-1]
    return choice(q_BTHD.device, [(not 16 <= width <= 256, f"head width {width} is outside 16..256")])


# ---- reference: torch's fused kernel, but in 16 bits plain products, which beat it on a CPU ----


def _seen(
    q_THD: Tensor, row: int, past: AttendedPast | None, own: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """All keys and values of one row [tokens, G, D]."""
    keys, values = ([own[0][row]], [own[1][row]]) if own is not None else ([], [])
    if past is not None:
        tokens = past.slab_E2SGD.shape[2]
        pairs = zip(past.entries_BE[row].tolist(), past.lengths_BE[row].tolist(), strict=True)
        seen = [(j, entry, length) for j, (entry, length) in enumerate(pairs) if length]
        kept = [_kept(past, entry, length) for _, entry, length in seen]
        if past.turn is not None:
            cos, sin = past.turn
            spans = [slice(j * tokens, j * tokens + length) for j, _, length in seen]
            kept = [(turned(k, cos[span], sin[span]), v) for (k, v), span in zip(kept, spans, strict=True)]
        keys, values = [k for k, _ in kept] + keys, [v for _, v in kept] + values
    if not keys:
        return q_THD[:0], q_THD[:0]
    if past is not None and past.slab_E2SGD.dtype != q_THD.dtype:
        keys, values = [k.to(q_THD.dtype) for k in keys], [v.to(q_THD.dtype) for v in values]
    return torch.cat(keys), torch.cat(values)


def _kept(past: AttendedPast, entry: int, length: int) -> tuple[Tensor, Tensor]:
    both = past.slab_E2SGD[entry]
    k, v = both if length == both.shape[1] else both[:, :length]
    if past.scales_E2SG is None:
        return k, v
    k_scale, v_scale = past.scales_E2SG[entry, :, :length, :, None]
    return k.float() * k_scale, v.float() * v_scale


def turned(x_TGD: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensor:
    """Adjacent pairs (a, b) of the last axis to (a cos - b sin, a sin + b cos), in float32; same dtype out."""
    a, b = x_TGD.float().reshape(*x_TGD.shape[:-1], -1, 2).unbind(-1)
    cos, sin = cos_TP[:, None], sin_TP[:, None]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x_TGD.dtype)


def _reference(q_THD: Tensor, k_SGD: Tensor, v_SGD: Tensor) -> Tensor:
    """One row; plain products take queries in parts that keep the scores small. All that meets a product is memory of
    its own: libraries feel where a row begins.
    """
    tokens, heads, width = q_THD.shape
    seen, groups, _ = k_SGD.shape
    if not seen:
        return torch.zeros_like(q_THD)
    q = q_THD.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    q = q.view(groups, -1, width)  # heads of a group one after the other
    k, v = k_SGD.transpose(0, 1), v_SGD.transpose(0, 1)
    if q.dtype is torch.float32:
        seen_GTD = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    else:
        parts = torch.split(q * width**-0.5, max(1, _SCORES // (groups * seen)), 1)
        seen_GTD = torch.cat([torch.softmax(part @ k.transpose(1, 2), -1) @ v for part in parts], 1)
    return seen_GTD.reshape(heads, tokens, width).transpose(0, 1)


# ---- the door ----


def _check(q: Tensor, past: AttendedPast | None, own: tuple[Tensor, Tensor] | None) -> None:
    expect_shape("q", q, (None, None, None, None))
    expect_floats(("q", q))
    rows, _, heads, width = q.shape
    expect(width % 2 == 0, f"head width {width} is odd")
    expect(past is not None or own is not None, "nothing to attend to: neither past nor own")
    groups = 1
    if own is not None:
        groups = own[0].shape[2] if own[0].ndim == 4 else 1
        for name, tensor in (("own keys", own[0]), ("own values", own[1])):
            expect_shape(name, tensor, (rows, own[0].shape[1], groups, width))
            expect_dtype(name, tensor.dtype, q.dtype)
        expect_floats(("q", q), ("own keys", own[0]), ("own values", own[1]))
    if past is not None:
        _check_past(q, past, groups if own is not None else None)
        groups = past.slab_E2SGD.shape[3]
    expect(heads % groups == 0, f"{heads} query heads do not split over {groups} heads of keys")


def _check_past(q: Tensor, past: AttendedPast, groups: int | None) -> None:
    slab = past.slab_E2SGD
    rows, width = q.shape[0], q.shape[3]
    expect_shape("slab", slab, (None, 2, None, groups, width))
    expect(slab.stride(4) == 1 or width == 1, f"slab has strides {slab.stride()}, the last not 1")
    small = slab.dtype in (torch.int8, FP8)
    expect_dtype("slab", slab.dtype, torch.int8, FP8, q.dtype)
    expect(small == (past.scales_E2SG is not None), f"a {slab.dtype} slab {'needs' if small else 'takes no'} scales")
    if past.scales_E2SG is not None:
        expect_shape("scales", past.scales_E2SG, tuple(slab.shape[:4]))
        expect_dtype("scales", past.scales_E2SG.dtype, torch.float32)
    expect_shape("entries", past.entries_BE, (rows, None))
    expect_shape("lengths", past.lengths_BE, (rows, past.entries_BE.shape[1]))
    for name, table in (("entries", past.entries_BE), ("lengths", past.lengths_BE)):
        expect_dtype(name, table.dtype, torch.int32)
    if past.turn is not None:
        places = past.entries_BE.shape[1] * slab.shape[2]
        for name, tensor in zip(("cos", "sin"), past.turn, strict=True):
            expect_shape(name, tensor, (places, width // 2))
            expect_dtype(name, tensor.dtype, torch.float32)
    if slab.device.type == "cpu":  # elsewhere reading the table would wait for the device
        entries, lengths = past.entries_BE.flatten().tolist(), past.lengths_BE.flatten().tolist()
        last = max(lengths, default=0)
        expect(last <= slab.shape[2], f"a length is {last}, an entry has {slab.shape[2]} tokens")
        used = [entry for entry, length in zip(entries, lengths, strict=True) if length > 0]
        fits = not used or (min(used) >= 0 and max(used) < slab.shape[0])
        expect(fits, f"an entry is outside 0..{slab.shape[0] - 1}")
