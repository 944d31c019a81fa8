"""The Triton kernel of chunk_attention, whose docstring has the layouts: one program per row, head and tile of queries.

for every entry of the row's table:  for every tile of its tokens:  fold the tile into (best, weight, sum)
then the same over the chunk itself                                    (online softmax, float32)
"""

from __future__ import annotations

import torch
from torch import Tensor

from .backend import WIDE, Build, jit, power_of_two, tl

_BLOCK_Q = 64
_LOG2E = 1.4426950408889634


@jit
def _decoded(stored: tl.tensor, FP8: tl.constexpr) -> tl.tensor:
    """Float32 of int8, of e4m3 in uint8 (through the bits of a float16, on any architecture), or of a float."""
    if FP8:
        wide = stored.to(tl.int16)
        half = ((wide & 0x7F) << 7) | ((wide & 0x80) << 8)
        return half.to(tl.float16, bitcast=True).to(tl.float32) * 256.0
    return stored.to(tl.float32)


@jit
def _fold(
    q: tl.tensor, k: tl.tensor, v: tl.tensor, inside: tl.tensor, k_scale: tl.tensor, v_scale: tl.tensor,
    best: tl.tensor, weight: tl.tensor, total: tl.tensor,
) -> tl.tensor:  # fmt: skip
    """One tile of keys and values into the running softmax; scales are 1 where nothing is quantised."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * k_scale[None]
    scores = tl.where(inside[None], scores, -float("inf"))
    higher = tl.maximum(best, tl.max(scores, 1))
    p = tl.exp2(scores - higher[:, None])
    fade = tl.exp2(best - higher)
    total = total * fade[:, None] + tl.dot((p * v_scale[None]).to(v.dtype), v, input_precision="ieee")
    return higher, weight * fade + tl.sum(p, 1), total


@jit
def _kernel(
    q: tl.tensor, slab: tl.tensor, entries: tl.tensor, lengths: tl.tensor, cos: tl.tensor, sin: tl.tensor,
    scales: tl.tensor, own_k: tl.tensor, own_v: tl.tensor, out: tl.tensor,
    tokens: tl.tensor, own_tokens: tl.tensor, slab_tokens: tl.tensor, seen: tl.tensor, scale: tl.tensor,
    heads: tl.tensor, groups: tl.tensor,
    q_row: tl.tensor, q_token: tl.tensor, q_head: tl.tensor,
    slab_entry: tl.tensor, slab_kind: tl.tensor, slab_token: tl.tensor, slab_head: tl.tensor,
    scale_entry: tl.tensor, scale_kind: tl.tensor, scale_token: tl.tensor, scale_head: tl.tensor,
    k_row: tl.tensor, k_token: tl.tensor, k_head: tl.tensor, v_row: tl.tensor, v_token: tl.tensor, v_head: tl.tensor,
    D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    PAST: tl.constexpr, OWN: tl.constexpr, TURNS: tl.constexpr, SCALED: tl.constexpr, FP8: tl.constexpr,
    WIDE: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1)
    group = head // (heads // groups)
    token = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    d = tl.arange(0, BLOCK_D)
    at = tl.arange(0, BLOCK_K)
    asked = (token[:, None] < tokens) & (d[None] < D)
    query = tl.load(q + row * q_row + token[:, None] * q_token + head * q_head + d[None], asked, 0.0)
    query = (query.to(tl.float32) * scale).to(tl.float32 if WIDE else out.dtype.element_ty)
    best = tl.full((BLOCK_Q,), -1.0e30, tl.float32)
    weight = tl.zeros((BLOCK_Q,), tl.float32)
    total = tl.zeros((BLOCK_Q, BLOCK_D), tl.float32)
    if PAST:
        for j in range(seen):
            length = tl.load(lengths + row * seen + j)
            entry = tl.load(entries + row * seen + j).to(tl.int64)
            keys = slab + entry * slab_entry + group * slab_head
            for start in range(0, length, BLOCK_K):
                place = start + at
                inside = place < length
                full = inside[:, None] & (d[None] < D)
                to = keys + place[:, None] * slab_token
                k = _decoded(tl.load(to + d[None], full, 0), FP8)
                if TURNS:
                    turn = (j * slab_tokens + place)[:, None] * (D // 2) + (d // 2)[None]
                    other = _decoded(tl.load(to + (d ^ 1)[None], full, 0), FP8)
                    sign = tl.where(d % 2 == 0, -1.0, 1.0)
                    k = k * tl.load(cos + turn, full, 0.0) + other * (sign[None] * tl.load(sin + turn, full, 0.0))
                v = _decoded(tl.load(to + slab_kind + d[None], full, 0), FP8)
                k_scale = tl.full((BLOCK_K,), 1.0, tl.float32)
                v_scale = tl.full((BLOCK_K,), 1.0, tl.float32)
                if SCALED:
                    factor = scales + entry * scale_entry + place * scale_token + group * scale_head
                    k_scale = tl.load(factor, inside, 0.0)
                    v_scale = tl.load(factor + scale_kind, inside, 0.0)
                best, weight, total = _fold(
                    query, k.to(query.dtype), v.to(query.dtype), inside, k_scale, v_scale, best, weight, total
                )
    if OWN:
        for start in range(0, own_tokens, BLOCK_K):
            place = start + at
            inside = place < own_tokens
            full = inside[:, None] & (d[None] < D)
            k = tl.load(own_k + row * k_row + place[:, None] * k_token + group * k_head + d[None], full, 0.0)
            v = tl.load(own_v + row * v_row + place[:, None] * v_token + group * v_head + d[None], full, 0.0)
            if WIDE:
                k = k.to(tl.float32)
                v = v.to(tl.float32)
            one = tl.full((BLOCK_K,), 1.0, tl.float32)
            best, weight, total = _fold(query, k, v, inside, one, one, best, weight, total)
    total = total / tl.where(weight > 0, weight, 1.0)[:, None]
    to = out + ((row * tokens + token[:, None]) * heads + head) * D + d[None]
    tl.store(to, total.to(out.dtype.element_ty), asked)


def launched(
    q: Tensor,
    past: tuple[Tensor, Tensor, Tensor] | None,
    turn: tuple[Tensor, Tensor] | None,
    scales: Tensor | None,
    own: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """`past` = slab, entries, lengths. Arguments are checked; what is absent is passed as q and never read."""
    rows, tokens, heads, width = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    slab, entries, lengths = past or (q[None], q, q)
    fp8 = slab.dtype is torch.float8_e4m3fn
    cos, sin = (t.contiguous() for t in turn) if turn else (q, q)
    k, v = own or (q, q)
    groups = k.shape[2] if own else slab.shape[3]
    block_k, warps, stages = _tile(width, turn is not None, scales is not None)
    block_q = min(_BLOCK_Q, max(16, power_of_two(tokens)))
    if out.numel():
        _kernel[(-(-tokens // block_q), heads, rows)](
            q, slab.view(torch.uint8) if fp8 else slab, entries.contiguous(), lengths.contiguous(), cos, sin,
            q if scales is None else scales, k, v, out,
            tokens, k.shape[1], slab.shape[2], entries.shape[1] if past else 0, width**-0.5 * _LOG2E, heads, groups,
            *q.stride()[:3], *slab.stride()[:4], *(q if scales is None else scales).stride(),
            *k.stride()[:3], *v.stride()[:3],
            D=width, BLOCK_D=max(16, power_of_two(width)), BLOCK_Q=block_q, BLOCK_K=block_k,
            PAST=past is not None, OWN=own is not None, TURNS=turn is not None, SCALED=scales is not None, FP8=fp8,
            WIDE=WIDE, num_warps=warps, num_stages=stages,
        )  # fmt: skip
    return out


def _tile(width: int, turns: bool, scaled: bool) -> tuple[int, int, int]:
    """Keys of a tile, warps, stages of the pipeline: the most without spills, as built for all targets."""
    if width <= 64:
        return (32 if turns else 64), 4, 2
    return 32, (8 if turns or scaled else 4), (1 if turns and scaled else 2)


def builds() -> list[Build]:
    """Head widths of small models and of Wan; float, int8 and fp8 pasts, kept rotated or plain."""
    sizes = ("tokens", "own_tokens", "slab_tokens", "seen", "heads", "groups")
    slab = ("slab_entry", "slab_kind", "slab_token", "slab_head")
    strides = ("q_row", "q_token", "q_head", *slab, "k_row", "k_token", "k_head", "v_row", "v_token", "v_head")
    scaled = ("scale_entry", "scale_kind", "scale_token", "scale_head")
    types = dict.fromkeys((*sizes, *strides, *scaled), "i32") | {"scale": "fp32", "entries": "*i32", "lengths": "*i32"}
    types |= dict.fromkeys(("cos", "sin", "scales"), "*fp32")
    types |= dict.fromkeys(("q", "own_k", "own_v", "out"), "*bf16")
    kinds = (("bf16", False), ("bf16", True), ("i8", False), ("u8", True))
    made = []
    for width, kind, turns in ((64, "bf16", False), *((128, *one) for one in kinds)):
        quantised = kind != "bf16"
        block_k, warps, stages = _tile(width, turns, quantised)
        constants = {
            "D": width, "BLOCK_D": width, "BLOCK_Q": _BLOCK_Q, "BLOCK_K": block_k, "PAST": True, "OWN": True,
            "TURNS": turns, "SCALED": quantised, "FP8": kind == "u8", "WIDE": False,
        }  # fmt: skip
        label = f"D {width}, {_NAMES.get(kind, kind)}{', turned' if turns else ''}"
        one = types | {"slab": f"*{kind}"}
        made.append(Build(_kernel, one, constants, warps, label, strides, {"num_stages": stages}))
    return made


_NAMES = {"i8": "int8", "u8": "fp8"}
