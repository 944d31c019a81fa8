"""Between the projections and the attention of a chunk: RMS norm of q and k, 3D rotary positions, into the slab.

    n(x) = x / sqrt(mean(x^2) + eps) * weight          mean over all heads (weight [H, D]) or over each head
    r(x) = (a cos - b sin, a sin + b cos)              pairs (a, b): adjacent, or i and i + P of the two halves
    q' = r(n(q)),  k' = r(n(k));   slab[entry of row, 0] = k' (absolute) or n(k) (window-relative),  [.., 1] = v

Keys may have fewer heads than queries, and fewer tokens: they are then turned as the first ones of a row.

Float32 inside, rounded once. A row's staged entry is all that is written: committed entries keep every bit.
Moved: q, k, v once in, q', k' once out and k, v once into the slab = 7 * B*T*H*D values where G = H and U = T, where
separate operations move about 20; FLOP: about 20 * B*T*H*D.
Sources: QK norm (2010.04245); rotary positions (2104.09864), over three axes as in Wan 2.1 (2503.20314, section 4.2).

Legend: B rows, T tokens of a chunk, U of its keys, H heads, G of keys, D width of a head, P = D / 2 pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from .backend import Backend, Build, Choice, choice, jit, power_of_two, runs_triton, tl
from .checks import expect, expect_dtype, expect_floats, expect_shape
from .chunk_attention import turned

WIDEST = 8192


@dataclass(frozen=True, slots=True)
class Staged:
    """Where keys and values go: slab [entries, 2, S >= U, G, D], int32 entry of each row, rotated or plain keys."""

    slab_E2SGD: Tensor
    entries_B: Tensor
    plain: bool


@dataclass(frozen=True, slots=True)
class Norms:
    """Weights of q and k (None: 1), and whether the mean runs over each head alone."""

    q_HD: Tensor | None = None
    k_GD: Tensor | None = None
    each_head: bool = False
    eps: float = 1e-6


def qk_norm_rope(
    q_BTHD: Tensor,
    k_BUGD: Tensor,
    v_BUGD: Tensor,
    turn_BTP: tuple[Tensor, Tensor],
    norms: Norms,
    staged: Staged | None,
    *,
    halves: bool = False,
    backend: Backend | None = None,
) -> tuple[Tensor, Tensor]:
    """(q', k'). `turn`: cos and sin float32 [B, T, P], broadcast views too. `halves`: pairs (i, i + P) instead of
    adjacent ones. Raises BadInput.
    """
    _check(q_BTHD, k_BUGD, v_BUGD, turn_BTP, norms, staged)
    if runs_triton(backend, choose(q_BTHD), q_BTHD.device):
        return _launched(q_BTHD, k_BUGD, v_BUGD, turn_BTP, norms, staged, halves)
    return _reference(q_BTHD, k_BUGD, v_BUGD, turn_BTP, norms, staged, halves)


def choose(q_BTHD: Tensor) -> Choice:
    """Triton on a GPU for tokens that fit one program."""
    heads, width = q_BTHD.shape[2:]
    padded = power_of_two(heads) * power_of_two(width)
    return choice(q_BTHD.device, [(padded > WIDEST, f"{heads} heads of {width} are padded to {padded} > {WIDEST}")])


# ---- reference ----


def _reference(
    q: Tensor, k: Tensor, v: Tensor, turn: tuple[Tensor, Tensor], norms: Norms, staged: Staged | None, halves: bool
) -> tuple[Tensor, Tensor]:
    tokens, normed_k = k.shape[1], _normed(k, norms.k_GD, norms)
    turned_q = _turned_rows(_normed(q, norms.q_HD, norms), turn, halves).to(q.dtype)
    turned_k = _turned_rows(normed_k, turn, halves).to(q.dtype)
    if staged is not None:
        kept = normed_k if staged.plain else turned_k
        for row, entry in enumerate(staged.entries_B.tolist()):
            staged.slab_E2SGD[entry, 0, :tokens] = kept[row]
            staged.slab_E2SGD[entry, 1, :tokens] = v[row]
    return turned_q, turned_k


def _turned_rows(x_BTHD: Tensor, turn: tuple[Tensor, Tensor], halves: bool) -> Tensor:
    """Row by row, which a cache holds."""
    turns, tokens, (cos, sin) = turned_halves if halves else turned, x_BTHD.shape[1], turn
    rows = [turns(x_BTHD[row], cos[row, :tokens], sin[row, :tokens]) for row in range(len(x_BTHD))]
    if len(rows) == 1:
        return rows[0][None]
    return torch.stack(rows) if rows else x_BTHD


def turned_halves(x_TGD: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensor:
    """Value i and value i + P of the last axis as a pair; float32 in and out."""
    a, b = x_TGD.chunk(2, -1)
    cos, sin = cos_TP[:, None], sin_TP[:, None]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


def _normed(x_BTHD: Tensor, weight_HD: Tensor | None, norms: Norms) -> Tensor:
    """Float32."""
    x, over = x_BTHD.float(), 1 if norms.each_head else 2
    x = F.rms_norm(x, x.shape[-over:], eps=norms.eps)
    return x if weight_HD is None else x * weight_HD.float()


# ---- Triton ----


@jit
def _normed_and_turned(
    x: tl.tensor, weight: tl.tensor, d: tl.tensor, pair: tl.tensor, stride: tl.tensor, weight_stride: tl.tensor,
    cos: tl.tensor, sin: tl.tensor, eps: tl.tensor,
    H: tl.constexpr, D: tl.constexpr, BLOCK_H: tl.constexpr, EACH: tl.constexpr, WEIGHS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """n(x) and r(n(x)) of one token [H, D]; the other value of a pair is read again, at `pair`."""
    head = tl.arange(0, BLOCK_H)[:, None]
    inside = (head < H) & (d < D)
    count = D if EACH else H * D
    own = tl.load(x + head * stride + d, inside, 0.0).to(tl.float32)
    other = tl.load(x + head * stride + pair, inside, 0.0).to(tl.float32)
    size = tl.sum(own * own, 1)[:, None] / count if EACH else tl.sum(tl.sum(own * own, 1), 0) / count
    factor = 1.0 / tl.sqrt(size + eps)
    own = own * factor
    other = other * factor
    if WEIGHS:
        own = own * tl.load(weight + head * weight_stride + d, inside, 0.0).to(tl.float32)
        other = other * tl.load(weight + head * weight_stride + pair, inside, 0.0).to(tl.float32)
    return own, own * cos + other * sin


@jit
def _kernel(
    q: tl.tensor, k: tl.tensor, v: tl.tensor, q_weight: tl.tensor, k_weight: tl.tensor, cos: tl.tensor, sin: tl.tensor,
    slab: tl.tensor, entries: tl.tensor, q_out: tl.tensor, k_out: tl.tensor, tokens: tl.tensor, keys: tl.tensor,
    eps: tl.tensor,
    q_row: tl.tensor, q_token: tl.tensor, q_head: tl.tensor, k_row: tl.tensor, k_token: tl.tensor, k_head: tl.tensor,
    v_row: tl.tensor, v_token: tl.tensor, v_head: tl.tensor, turn_row: tl.tensor, turn_token: tl.tensor,
    q_weight_head: tl.tensor, k_weight_head: tl.tensor,
    slab_entry: tl.tensor, slab_kind: tl.tensor, slab_token: tl.tensor, slab_head: tl.tensor,
    H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_G: tl.constexpr,
    BLOCK_D: tl.constexpr, EACH: tl.constexpr, Q_WEIGHS: tl.constexpr, K_WEIGHS: tl.constexpr, STAGES: tl.constexpr,
    PLAIN: tl.constexpr, HALVES: tl.constexpr,
) -> None:  # fmt: skip
    """One program per token; `keys` tokens of a row have keys."""
    row = (tl.program_id(0) // tokens).to(tl.int64)
    token = tl.program_id(0) % tokens
    d = tl.arange(0, BLOCK_D)[None]
    first = d < D // 2 if HALVES else d % 2 == 0
    pair = tl.where(first, d + D // 2, d - D // 2) if HALVES else d ^ 1
    angle = row * turn_row + token * turn_token + (d % (D // 2) if HALVES else d // 2)
    c = tl.load(cos + angle, d < D, 0.0)
    s = tl.load(sin + angle, d < D, 0.0) * tl.where(first, -1.0, 1.0)
    _, q_turned = _normed_and_turned(
        q + row * q_row + token * q_token, q_weight, d, pair, q_head, q_weight_head, c, s, eps,
        H, D, BLOCK_H, EACH, Q_WEIGHS,
    )  # fmt: skip
    head = tl.arange(0, BLOCK_H)[:, None]
    to = (row * tokens + token) * (H * D) + head * D + d
    tl.store(q_out + to, q_turned.to(q_out.dtype.element_ty), (head < H) & (d < D))
    if token < keys:
        k_plain, k_turned = _normed_and_turned(
            k + row * k_row + token * k_token, k_weight, d, pair, k_head, k_weight_head, c, s, eps,
            G, D, BLOCK_G, EACH, K_WEIGHS,
        )  # fmt: skip
        group = tl.arange(0, BLOCK_G)[:, None]
        inside = (group < G) & (d < D)
        k_to = k_out + (row * keys + token) * (G * D) + group * D + d
        tl.store(k_to, k_turned.to(k_out.dtype.element_ty), inside)
        if STAGES:
            kept = k_plain if PLAIN else k_turned
            entry = slab + tl.load(entries + row).to(tl.int64) * slab_entry
            staged = entry + token * slab_token + group * slab_head + d
            tl.store(staged, kept.to(slab.dtype.element_ty), inside)
            value = tl.load(v + row * v_row + token * v_token + group * v_head + d, inside, 0.0)
            tl.store(staged + slab_kind, value, inside)


def _launched(
    q: Tensor, k: Tensor, v: Tensor, turn: tuple[Tensor, Tensor], norms: Norms, staged: Staged | None, halves: bool
) -> tuple[Tensor, Tensor]:
    """What is absent is passed as something else and never read."""
    rows, tokens, heads, width = q.shape
    keys, groups = k.shape[1:3]
    q_out, k_out = (torch.empty(x.shape, dtype=q.dtype, device=q.device) for x in (q, k))
    q_weight, k_weight = (q[0, 0] if w is None else w for w in (norms.q_HD, norms.k_GD))
    cos, sin = (t.contiguous() for t in turn) if turn[0].stride() != turn[1].stride() else turn
    slab, entries = (v[None], q) if staged is None else (staged.slab_E2SGD, staged.entries_B.contiguous())
    if q_out.numel():
        _kernel[(rows * tokens,)](
            q, k, v, q_weight, k_weight, cos, sin, slab, entries, q_out, k_out, tokens, keys, norms.eps,
            *(stride for t in (q, k, v) for stride in t.stride()[:3]), *cos.stride()[:2],
            q_weight.stride(0), k_weight.stride(0), *slab.stride()[:4],
            H=heads, G=groups, D=width, BLOCK_H=power_of_two(heads), BLOCK_G=power_of_two(groups),
            BLOCK_D=power_of_two(width), EACH=norms.each_head, Q_WEIGHS=norms.q_HD is not None,
            K_WEIGHS=norms.k_GD is not None, STAGES=staged is not None, PLAIN=staged is not None and staged.plain,
            HALVES=halves, num_warps=_warps(power_of_two(heads) * power_of_two(width)),
        )  # fmt: skip
    return q_out, k_out


def _warps(values: int) -> int:
    return min(16, max(1, values // 256))


def _check(q: Tensor, k: Tensor, v: Tensor, turn: tuple[Tensor, Tensor], norms: Norms, staged: Staged | None) -> None:
    expect_shape("q", q, (None, None, None, None))
    rows, tokens, heads, width = q.shape
    expect(width % 2 == 0, f"head width {width} is odd")
    expect_shape("k", k, (rows, None, None, width))
    keys, groups = k.shape[1:3]
    expect(keys <= tokens, f"{keys} tokens have keys, {tokens} have queries")
    expect(groups <= heads, f"{groups} heads of keys, {heads} of queries")
    weights = [("q weight", norms.q_HD), ("k weight", norms.k_GD)]
    given = [(name, weight) for name, weight in weights if weight is not None]
    expect_floats(("q", q), ("k", k), ("v", v), ("cos", turn[0]), ("sin", turn[1]), *given)
    for name, tensor in (("k", k), ("v", v)):
        expect_shape(name, tensor, tuple(k.shape))
        expect_dtype(name, tensor.dtype, q.dtype)
    for name, tensor in zip(("cos", "sin"), turn, strict=True):
        expect_shape(name, tensor, (rows, tokens, width // 2))
        expect_dtype(name, tensor.dtype, torch.float32)
    for name, weight in given:
        expect_shape(name, weight, (heads if weight is norms.q_HD else groups, width))
    if staged is not None:
        slab = staged.slab_E2SGD
        expect_shape("slab", slab, (None, 2, None, groups, width))
        expect_dtype("slab", slab.dtype, q.dtype)
        expect(slab.stride(4) == 1 or width == 1, f"slab has strides {slab.stride()}, the last not 1")
        expect(keys <= slab.shape[2], f"{keys} tokens do not fit an entry of {slab.shape[2]}")
        expect_shape("entries", staged.entries_B, (rows,))
        expect_dtype("entries", staged.entries_B.dtype, torch.int32)


def builds() -> list[Build]:
    """Small models (a mean a head), Waypoint's grouped heads and pairs of halves, Wan's 14B (40 heads, one mean)."""
    types = dict.fromkeys(("q", "k", "v", "q_weight", "k_weight", "slab", "q_out", "k_out"), "*bf16")
    types |= {"cos": "*fp32", "sin": "*fp32", "entries": "*i32", "tokens": "i32", "keys": "i32", "eps": "fp32"}
    strides = tuple(name for name in _kernel.arg_names if name not in types and name.islower())
    return [
        Build(
            _kernel,
            types | dict.fromkeys(strides, "i32"),
            {
                "H": heads, "G": groups, "D": width, "BLOCK_H": power_of_two(heads), "BLOCK_G": power_of_two(groups),
                "BLOCK_D": width, "EACH": each, "Q_WEIGHS": not each, "K_WEIGHS": not each, "STAGES": True,
                "PLAIN": each and not halves, "HALVES": halves,
            },
            _warps(power_of_two(heads) * width),
            f"{heads}/{groups} of {width}, halves" if halves else f"{heads} heads of {width}",
            strides,
        )
        for heads, groups, width, each, halves in (
            (6, 6, 32, True, False), (40, 20, 64, True, True), (40, 40, 128, False, False),
        )
    ]  # fmt: skip
