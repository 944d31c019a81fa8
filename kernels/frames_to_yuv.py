"""Pictures from a decoder to what a video encoder reads: clamp, upscale, BT.709 limited range, 4:2:0, uint8.

    y = .2126 r + .7152 g + .0722 b        r, g, b in 0..1
    Y = 16 + 219 y      Cb = 128 + 224 (b - y) / 1.8556      Cr = 128 + 224 (r - y) / 1.5748      rounded half up
    I420  [ Y: H rows of W | Cb: H/2 rows of W/2 | Cr ]      NV12  [ Y | H/2 rows of Cb Cr Cb Cr .. ]

One chroma sample is the mean of its four pixels. Upscaled by an integer: nearest, or bicubic (Catmull-Rom, edges
repeated). The same operations in the same order in torch and Triton, none fused, so the bytes are the same.
Moved: the picture once, and 1.5 bytes a shown pixel: half of RGB's 3 to the host. FLOP: about 30 a shown pixel, bicubic
200. Sources: ITU-R BT.709-6 (items 3.2 to 3.5); Keys, cubic convolution (1981), a = -1/2.

Legend: T frames, 3 channels, H W rows and columns.
"""

from __future__ import annotations

import math
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn import functional as F

from .backend import Backend, Build, Choice, choice, jit, runs_triton, tl
from .checks import FLOATS, expect, expect_dtype, expect_shape

_LARGEST = 2**31 - 1
_BLOCK = 128


class YuvLayout(StrEnum):
    """How planes lie."""

    I420 = "i420"
    NV12 = "nv12"


def frames_to_yuv(
    rgb_T3HW: Tensor,
    layout: YuvLayout = YuvLayout.I420,
    scale: int = 1,
    smooth: bool = False,
    *,
    backend: Backend | None = None,
) -> Tensor:
    """Bytes [T, 3 * H' * W' / 2], H' = scale * H. Floats are in -1..1 and clamped, uint8 in 0..255. Raises BadInput."""
    expect_shape("frames", rgb_T3HW, (None, 3, None, None))
    expect_dtype("frames", rgb_T3HW.dtype, torch.uint8, *FLOATS)
    height, width = (scale * size for size in rgb_T3HW.shape[2:])
    expect(scale >= 1, f"scale {scale} is below 1")
    expect(height % 2 == 0 and width % 2 == 0, f"{width} x {height} is odd: four pixels share a chroma sample")
    if runs_triton(backend, choose(rgb_T3HW), rgb_T3HW.device):
        return _launched(rgb_T3HW, layout, scale, smooth)
    return _reference(rgb_T3HW, layout, scale, smooth)


def choose(rgb_T3HW: Tensor) -> Choice:
    values = rgb_T3HW[0].numel() if len(rgb_T3HW) else 0
    return choice(rgb_T3HW.device, [(values > _LARGEST, f"a frame has {values} values, above {_LARGEST}")])


def cubic_weights(scale: int) -> Tensor:
    """Float32 [scale, 4]: weights of the four taps around a shown pixel, by its place within the source pixel."""
    rows = []
    for place in range(scale):
        at = (place + 0.5) / scale - 0.5
        t = at - math.floor(at)
        outer, inner = (-0.5 * t + t * t - 0.5 * t**3), (1 - 2.5 * t * t + 1.5 * t**3)
        rows.append([outer, inner, 0.5 * t + 2 * t * t - 1.5 * t**3, -0.5 * t * t + 0.5 * t**3])
    return torch.tensor(rows, dtype=torch.float32)


# ---- reference ----


def _reference(rgb: Tensor, layout: YuvLayout, scale: int, smooth: bool) -> Tensor:
    x = rgb.float() * (1 / 255) if rgb.dtype is torch.uint8 else rgb.float().clamp(-1, 1) * 0.5 + 0.5
    if scale > 1 and smooth:
        x = _cubic(_cubic(x, scale).transpose(2, 3), scale).transpose(2, 3).clamp(0, 1)
    elif scale > 1:
        x = x.repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    top, bottom = x[:, :, ::2], x[:, :, 1::2]
    mean = ((top[..., ::2] + top[..., 1::2]) + (bottom[..., ::2] + bottom[..., 1::2])) * 0.25
    y = _bytes(_luma(x) * 219.0 + 16.5)
    light = _luma(mean)
    cb = _bytes((mean[:, 2] - light) * (224 / 1.8556) + 128.5)
    cr = _bytes((mean[:, 0] - light) * (224 / 1.5748) + 128.5)
    chroma = torch.stack([cb, cr], 3 if layout is YuvLayout.NV12 else 1)
    return torch.cat([y.flatten(1), chroma.flatten(1)], 1)


def _luma(rgb_T3HW: Tensor) -> Tensor:
    r, g, b = rgb_T3HW.unbind(1)
    return r * 0.2126 + g * 0.7152 + b * 0.0722


def _bytes(x: Tensor) -> Tensor:
    return x.floor().to(torch.uint8)


def _cubic(x_T3HW: Tensor, scale: int) -> Tensor:
    """Columns upscaled."""
    width, weights = x_T3HW.shape[3], cubic_weights(scale).to(x_T3HW.device)
    padded = F.pad(x_T3HW, (2, 2, 0, 0), mode="replicate")
    shown = []
    for place in range(scale):
        first = 0 if 2 * place + 1 < scale else 1
        taps = [padded[..., first + n : first + n + width] * weights[place, n] for n in range(4)]
        shown.append(((taps[0] + taps[1]) + taps[2]) + taps[3])
    return torch.stack(shown, -1).flatten(-2)


# ---- Triton ----


@jit
def _value(at: tl.tensor, inside: tl.tensor, BYTES: tl.constexpr) -> tl.tensor:
    """0..1 of what lies at `at`."""
    x = tl.load(at, inside, 0).to(tl.float32)
    return x * 0.00392156862745098 if BYTES else tl.minimum(tl.maximum(x, -1.0), 1.0) * 0.5 + 0.5


@jit
def _shown(
    plane: tl.tensor, y: tl.tensor, x: tl.tensor, inside: tl.tensor, height: tl.tensor, width: tl.tensor,
    row: tl.tensor, column: tl.tensor, weights: tl.tensor,
    SCALE: tl.constexpr, SMOOTH: tl.constexpr, BYTES: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """One channel of shown pixels (y, x)."""
    if not SMOOTH:
        return _value(plane + (y // SCALE) * row + (x // SCALE) * column, inside, BYTES)
    down = y // SCALE + tl.where(2 * (y % SCALE) + 1 < SCALE, -2, -1)
    right = x // SCALE + tl.where(2 * (x % SCALE) + 1 < SCALE, -2, -1)
    total = tl.zeros(inside.shape, tl.float32)
    for i in range(4):
        line = plane + tl.minimum(tl.maximum(down + i, 0), height - 1) * row
        across = tl.zeros(inside.shape, tl.float32)
        for j in range(4):
            at = line + tl.minimum(tl.maximum(right + j, 0), width - 1) * column
            across += _value(at, inside, BYTES) * tl.load(weights + (x % SCALE) * 4 + j)
        total += across * tl.load(weights + (y % SCALE) * 4 + i)
    return tl.minimum(tl.maximum(total, 0.0), 1.0)


@jit
def _luma_of(r: tl.tensor, g: tl.tensor, b: tl.tensor) -> tl.tensor:
    return r * 0.2126 + g * 0.7152 + b * 0.0722


@jit
def _kernel(
    rgb: tl.tensor, out: tl.tensor, weights: tl.tensor, height: tl.tensor, width: tl.tensor,
    frame: tl.tensor, channel: tl.tensor, row: tl.tensor, column: tl.tensor,
    SCALE: tl.constexpr, SMOOTH: tl.constexpr, BYTES: tl.constexpr, NV12: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program: BLOCK chroma samples of one chroma row, and the four pixels of each."""
    wide = width * SCALE
    half = wide // 2
    line = tl.program_id(1)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = c < half
    number = tl.program_id(2).to(tl.int64)
    red = rgb + number * frame
    luma = out + number * (height * SCALE * wide * 3 // 2)
    r_sum = tl.zeros((BLOCK,), tl.float32)
    g_sum = tl.zeros((BLOCK,), tl.float32)
    b_sum = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(2):
        y = line * 2 + i + c * 0
        r0 = _shown(red, y, c * 2, inside, height, width, row, column, weights, SCALE, SMOOTH, BYTES)
        r1 = _shown(red, y, c * 2 + 1, inside, height, width, row, column, weights, SCALE, SMOOTH, BYTES)
        green = red + channel
        g0 = _shown(green, y, c * 2, inside, height, width, row, column, weights, SCALE, SMOOTH, BYTES)
        g1 = _shown(green, y, c * 2 + 1, inside, height, width, row, column, weights, SCALE, SMOOTH, BYTES)
        blue = green + channel
        b0 = _shown(blue, y, c * 2, inside, height, width, row, column, weights, SCALE, SMOOTH, BYTES)
        b1 = _shown(blue, y, c * 2 + 1, inside, height, width, row, column, weights, SCALE, SMOOTH, BYTES)
        r_sum += r0 + r1
        g_sum += g0 + g1
        b_sum += b0 + b1
        to = luma + y * wide + c * 2
        tl.store(to, (_luma_of(r0, g0, b0) * 219.0 + 16.5).to(tl.uint8), inside)
        tl.store(to + 1, (_luma_of(r1, g1, b1) * 219.0 + 16.5).to(tl.uint8), inside)
    r_sum *= 0.25
    b_sum *= 0.25
    light = _luma_of(r_sum, g_sum * 0.25, b_sum)
    cb = ((b_sum - light) * 120.71567148092263 + 128.5).to(tl.uint8)
    cr = ((r_sum - light) * 142.24028448056896 + 128.5).to(tl.uint8)
    chroma = luma + height * SCALE * wide
    at = line * half + c
    if NV12:
        tl.store(chroma + at * 2, cb, inside)
        tl.store(chroma + at * 2 + 1, cr, inside)
    else:
        tl.store(chroma + at, cb, inside)
        tl.store(chroma + height * SCALE // 2 * half + at, cr, inside)


def _launched(rgb: Tensor, layout: YuvLayout, scale: int, smooth: bool) -> Tensor:
    frames, _, height, width = rgb.shape
    out = torch.empty((frames, height * width * scale * scale * 3 // 2), dtype=torch.uint8, device=rgb.device)
    half = width * scale // 2
    if out.numel():
        _kernel[(-(-half // _BLOCK), height * scale // 2, frames)](
            rgb, out, cubic_weights(scale).to(rgb.device), height, width, *rgb.stride(),
            SCALE=scale, SMOOTH=smooth and scale > 1, BYTES=rgb.dtype is torch.uint8, NV12=layout is YuvLayout.NV12,
            BLOCK=_BLOCK, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return out


def builds() -> list[Build]:
    """Wan's float pictures and pictures in bytes; as they are, and twice as large."""
    sizes = ("height", "width", "frame", "channel", "row", "column")
    return [
        Build(
            _kernel,
            {"rgb": f"*{kind}", "out": "*u8", "weights": "*fp32"} | dict.fromkeys(sizes, "i32"),
            {"SCALE": scale, "SMOOTH": scale > 1, "BYTES": kind == "u8", "NV12": scale > 1, "BLOCK": _BLOCK},
            4,
            f"exact, {kind} x {scale}",
            options={"enable_fp_fusion": False},
        )
        for kind, scale in (("fp32", 1), ("bf16", 2), ("u8", 1))
    ]
