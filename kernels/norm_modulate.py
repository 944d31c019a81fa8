"""AdaLN around a block: norm of every token, then scale and shift of its frame; and a gated residual before it.

    h = x + gate * y                       (gated residual; gate None = 1)
    z = norm(h) * (1 + scale) + shift      layer: (h - mean) / sqrt(var + eps);  rms: h / sqrt(mean(h^2) + eps)
    z = norm(h) * scale + shift            `learned`: a norm with a weight (and bias) of its own; shift None = 0

Statistics and arithmetic are float32; h is rounded to the dtype of x before the norm, so fused equals unfused.
Moved: x, y, h, z once each = up to 4 * B*T*M values, where separate operations move up to 9; FLOP: about 10 * B*T*M.
Sources: DiT (2212.09748, section 3.2, adaLN-zero); RMSNorm (1910.07467).

Legend: B rows, T tokens of a row, F frames (T = F x tokens of a frame), M width.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn import functional as F

from .backend import Backend, Build, Choice, choice, jit, power_of_two, runs_triton, tl
from .checks import expect, expect_floats, expect_shape

WIDEST = 16384


class Norm(StrEnum):
    """What is normalised: deviation from the mean, or size."""

    LAYER = "layer"
    RMS = "rms"


@dataclass(frozen=True, slots=True)
class _How:
    norm: Norm
    learned: bool
    eps: float


def norm_modulate(
    x_BTM: Tensor,
    scale_BFM: Tensor,
    shift_BFM: Tensor | None,
    *,
    norm: Norm = Norm.LAYER,
    learned: bool = False,
    eps: float = 1e-6,
    backend: Backend | None = None,
) -> Tensor:
    """z of x itself, in the dtype of x. `scale`, `shift` may be broadcast views. Raises BadInput.

    `learned`: `scale` is the factor itself (the weight of the norm), not what is added to 1.
    """
    _check(x_BTM, ("scale", scale_BFM), ("shift", shift_BFM))
    how = _How(norm, learned, eps)
    if runs_triton(backend, choose(x_BTM), x_BTM.device):
        return _launched(x_BTM, None, None, (scale_BFM, shift_BFM), how)[1]
    return _reference_norm(x_BTM, scale_BFM, shift_BFM, how)


def gate_residual(x_BTM: Tensor, y_BTM: Tensor, gate_BFM: Tensor | None, *, backend: Backend | None = None) -> Tensor:
    """h alone. Raises BadInput."""
    _check(x_BTM, ("gate", gate_BFM), y_BTM=y_BTM)
    if runs_triton(backend, choose(x_BTM), x_BTM.device):
        return _launched(x_BTM, y_BTM, gate_BFM, None, _How(Norm.LAYER, False, 0.0))[0]
    return _reference_gate(x_BTM, y_BTM, gate_BFM)


def gate_norm_modulate(
    x_BTM: Tensor,
    y_BTM: Tensor,
    gate_BFM: Tensor | None,
    scale_BFM: Tensor,
    shift_BFM: Tensor | None,
    *,
    norm: Norm = Norm.LAYER,
    learned: bool = False,
    eps: float = 1e-6,
    backend: Backend | None = None,
) -> tuple[Tensor, Tensor]:
    """(h, z of h): the end of one half of a block and the start of the next in one pass. Raises BadInput."""
    _check(x_BTM, ("scale", scale_BFM), ("shift", shift_BFM), ("gate", gate_BFM), y_BTM=y_BTM)
    how = _How(norm, learned, eps)
    if runs_triton(backend, choose(x_BTM), x_BTM.device):
        return _launched(x_BTM, y_BTM, gate_BFM, (scale_BFM, shift_BFM), how)
    h = _reference_gate(x_BTM, y_BTM, gate_BFM)
    return h, _reference_norm(h, scale_BFM, shift_BFM, how)


def choose(x_BTM: Tensor) -> Choice:
    """Triton on a GPU for rows that fit one program."""
    width = x_BTM.shape[-1]
    return choice(x_BTM.device, [(width > WIDEST, f"width {width} is above {WIDEST}")])


# ---- reference ----


def _reference_norm(x_BTM: Tensor, scale_BFM: Tensor, shift_BFM: Tensor | None, how: _How) -> Tensor:
    h, width = x_BTM.float(), x_BTM.shape[-1:]
    h = F.layer_norm(h, width, eps=how.eps) if how.norm is Norm.LAYER else F.rms_norm(h, width, eps=how.eps)
    scale = _spread(scale_BFM)
    z = _framed(h, scale) * (scale if how.learned else 1 + scale)
    z = z if shift_BFM is None else z + _spread(shift_BFM)
    return z.view(x_BTM.shape).to(x_BTM.dtype)


def _reference_gate(x_BTM: Tensor, y_BTM: Tensor, gate_BFM: Tensor | None) -> Tensor:
    y = y_BTM.float()
    if gate_BFM is not None:
        gate = _spread(gate_BFM)
        y = (_framed(y, gate) * gate).view(x_BTM.shape)
    return (x_BTM.float() + y).to(x_BTM.dtype)


def _spread(modulation_BFM: Tensor) -> Tensor:
    """Float32 [B, F, 1, M]; of one frame [B, 1, M], which is the same for all tokens of a row."""
    modulation = modulation_BFM.float()
    return modulation if modulation.shape[1] == 1 else modulation[:, :, None]


def _framed(x_BTM: Tensor, spread: Tensor) -> Tensor:
    """[B, F, tokens of a frame, M] where `spread` is."""
    rows, _, width = x_BTM.shape
    return x_BTM if spread.ndim == 3 else x_BTM.reshape(rows, spread.shape[1], -1, width)


# ---- Triton ----


@jit
def _kernel(
    x: tl.tensor, y: tl.tensor, gate: tl.tensor, scale: tl.tensor, shift: tl.tensor, h_out: tl.tensor, z_out: tl.tensor,
    tokens: tl.tensor, frame_tokens: tl.tensor, width: tl.tensor, eps: tl.tensor,
    x_row: tl.tensor, x_token: tl.tensor, y_row: tl.tensor, y_token: tl.tensor,
    gate_row: tl.tensor, gate_frame: tl.tensor,
    scale_row: tl.tensor, scale_frame: tl.tensor, shift_row: tl.tensor, shift_frame: tl.tensor,
    ADDS: tl.constexpr, GATES: tl.constexpr, NORMS: tl.constexpr, CENTERS: tl.constexpr, LEARNED: tl.constexpr,
    SHIFTS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One program per token."""
    token = tl.program_id(0)
    row = (token // tokens).to(tl.int64)
    place = token % tokens
    frame = place // frame_tokens
    at = tl.arange(0, BLOCK)
    inside = at < width
    h = tl.load(x + row * x_row + place * x_token + at, inside, 0.0).to(tl.float32)
    if ADDS:
        add = tl.load(y + row * y_row + place * y_token + at, inside, 0.0).to(tl.float32)
        if GATES:
            add = add * tl.load(gate + row * gate_row + frame * gate_frame + at, inside, 0.0).to(tl.float32)
        h = (h + add).to(h_out.dtype.element_ty)
        tl.store(h_out + token.to(tl.int64) * width + at, h, inside)
        h = h.to(tl.float32)
    if NORMS:
        if CENTERS:
            h = tl.where(inside, h - tl.sum(h, 0) / width, 0.0)
        h = h / tl.sqrt(tl.sum(h * h, 0) / width + eps)
        up = tl.load(scale + row * scale_row + frame * scale_frame + at, inside, 0.0).to(tl.float32)
        if not LEARNED:
            up = 1.0 + up
        z = h * up
        if SHIFTS:
            z += tl.load(shift + row * shift_row + frame * shift_frame + at, inside, 0.0).to(tl.float32)
        tl.store(z_out + token.to(tl.int64) * width + at, z.to(z_out.dtype.element_ty), inside)


def _launched(
    x: Tensor, y: Tensor | None, gate: Tensor | None, modulation: tuple[Tensor, Tensor | None] | None, how: _How
) -> tuple[Tensor, Tensor]:
    """h and z; what is not asked for is the empty tensor."""
    rows, tokens, width = x.shape
    h = torch.empty(x.shape if y is not None else 0, dtype=x.dtype, device=x.device)
    z = torch.empty(x.shape if modulation is not None else 0, dtype=x.dtype, device=x.device)
    scale, shift = modulation or (None, None)
    frames = next((t.shape[1] for t in (scale, gate) if t is not None), 1)
    parts = [t if t is not None else x for t in (y, gate, scale, shift)]
    block = power_of_two(width)
    if rows * tokens:
        _kernel[(rows * tokens,)](
            x, *parts, h, z, tokens, tokens // frames, width, how.eps,
            *(stride for t in (x, *parts) for stride in t.stride()[:2]),
            ADDS=y is not None, GATES=gate is not None, NORMS=modulation is not None,
            CENTERS=how.norm is Norm.LAYER, LEARNED=how.learned, SHIFTS=shift is not None, BLOCK=block,
            num_warps=_warps(block),
        )  # fmt: skip
    return h, z


def _warps(block: int) -> int:
    return min(16, max(1, block // 512))


def _check(x_BTM: Tensor, *given: tuple[str, Tensor | None], y_BTM: Tensor | None = None) -> None:
    expect_shape("x", x_BTM, (None, None, None))
    rows, tokens, width = x_BTM.shape
    modulations = [(name, tensor) for name, tensor in given if tensor is not None]
    frames = modulations[0][1].shape[1] if modulations and modulations[0][1].ndim == 3 else 1
    for name, tensor in modulations:
        expect_shape(name, tensor, (rows, frames, width))
    if y_BTM is not None:
        expect_shape("y", y_BTM, (rows, tokens, width))
    expect(frames > 0 and tokens % frames == 0, f"{tokens} tokens do not split into {frames} frames")
    expect_floats(("x", x_BTM), *modulations, *([] if y_BTM is None else [("y", y_BTM)]))


def builds() -> list[Build]:
    """Widths of small and large models, fused and alone."""
    types = dict.fromkeys(("x", "y", "h_out", "z_out"), "*bf16") | dict.fromkeys(("gate", "scale", "shift"), "*fp32")
    types |= {"eps": "fp32"} | dict.fromkeys(("tokens", "frame_tokens", "width"), "i32")
    strides = ("x_row", "x_token", "y_row", "y_token", "gate_row", "gate_frame")
    types |= dict.fromkeys((*strides, "scale_row", "scale_frame", "shift_row", "shift_frame"), "i32")
    on = {"ADDS": True, "GATES": True, "NORMS": True, "CENTERS": True, "LEARNED": False, "SHIFTS": True}
    kinds = [(f"width {block}", on | {"BLOCK": block}) for block in (256, 2048, WIDEST)]
    kinds.append(("width 8192, a weight", on | {"CENTERS": False, "LEARNED": True, "SHIFTS": False, "BLOCK": 8192}))
    return [Build(_kernel, types, how, _warps(int(str(how["BLOCK"]))), label) for label, how in kinds]
