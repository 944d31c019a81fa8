"""Gaussian noise as a pure function of (seed, branch, chunk, step): the same bits on a CPU and on a GPU, in any batch.

    block e of a row:  Philox 4x64-10, key [seed | branch], counter [e + 1 | 0 | chunk | step + 1]  -> 4 words
    word:              high half -> u in (0, 1], low half -> angle;  r = sqrt(-2 ln u);  r cos(angle), r sin(angle)
    a row of n values: [ first value of every block | second | .. | eighth ] cut at n

Logarithm, sine and cosine are polynomials of float32 multiplications and additions in one order, and the kernel is
built without fused multiply-adds, so nothing is left to a device's own functions. Words are those of numpy's Philox.
Moved: 4 bytes a value; about 30 float and 40 integer operations a value. u has 31 bits, so |z| <= 6.56.
Sources: Philox (Salmon et al. 2011); Box and Muller (1958); polynomials of the Cephes library (Moshier).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .door import expect
from .launch import Backend, Build, Choice, choice, jit, power_of_two, runs_triton, tl

Floats = NDArray[np.float32]
Key = tuple[int, int, int, int]  # seed, branch, chunk, step

BLOCK_VALUES = 8
_WORD = 2**64 - 1
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_SIN = np.array((-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1), np.float32)
_COS = np.array((2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2), np.float32)
_QUARTER = math.pi / 2 * 2.0**-30


def gaussian(
    keys: Sequence[Key], shape: tuple[int, ...], device: torch.device, *, backend: Backend | None = None
) -> Tensor:
    """Float32 [rows, *shape], row i from keys[i] alone. Raises BadInput on a negative chunk or step."""
    check_keys(keys)
    count = math.prod(shape)
    if runs_triton(backend, choose(device), device):
        out = torch.empty((len(keys), count), device=device)
        if out.numel():
            blocks = blocks_of(count)
            grid = (-(-blocks // lanes(blocks)), len(keys))
            words = key_words(keys, device)
            _kernel[grid](out, words, count, blocks, BLOCK=lanes(blocks), enable_fp_fusion=False)
    else:
        out = torch.stack([reference(key, count) for key in keys]).to(device)
    return out.reshape(len(keys), *shape)


def choose(device: torch.device) -> Choice:
    return choice(device, [])


def check_keys(keys: Sequence[Key]) -> None:
    expect(len(keys) > 0, "no keys")
    for _, _, chunk, step in keys:
        expect(chunk >= 0 and step >= 0, f"noise needs chunk >= 0 and step >= 0, got chunk {chunk} step {step}")


def blocks_of(count: int) -> int:
    return -(-count // BLOCK_VALUES)


def key_words(keys: Sequence[Key], device: torch.device) -> Tensor:
    """Int64 [rows, 4]: seed, branch, chunk, step + 1, modulo 2**64."""
    words = [[seed & _WORD, branch & _WORD, chunk & _WORD, (step + 1) & _WORD] for seed, branch, chunk, step in keys]
    return torch.from_numpy(np.array(words, np.uint64).view(np.int64)).to(device)


# ---- reference: numpy, whose operations round as IEEE says; torch's square root on a CPU may be a step off ----


def reference(key: Key, count: int) -> Tensor:
    """Float32 [count] on the CPU."""
    seed, branch, chunk, step = key
    counter = ((chunk & _WORD) << 128) | (((step + 1) & _WORD) << 192)
    philox = np.random.Philox(key=(seed & _WORD) | ((branch & _WORD) << 64), counter=counter)
    words = philox.random_raw(4 * blocks_of(count)).reshape(-1, 4).T
    low, high = words.astype(np.uint32), (words >> 32).astype(np.uint32)  # [4, blocks] each
    radius = np.sqrt(np.maximum(_log((high >> 1 | 1).astype(np.float32)) * -2.0, 0.0))
    cosine, sine = _turn(low)
    return torch.from_numpy(np.stack([radius * cosine, radius * sine], 1).reshape(-1)[:count])


def _log(x: Floats) -> Floats:
    """ln(x / 2**31) of x in 1..2**31."""
    bits = x.view(np.int32)
    mantissa = (bits & 0x7FFFFF | 0x3F800000).view(np.float32)
    above = mantissa > np.float32(1.41421356)
    m = np.where(above, mantissa * np.float32(0.5), mantissa) - 1
    power = ((bits >> 23) - 158 + above).astype(np.float32)
    squared, y = m * m, m * np.float32(_LOG[0])
    for c in _LOG[1:-1]:
        y += np.float32(c)
        y *= m
    y = (y + np.float32(_LOG[-1])) * m * squared + power * np.float32(-2.12194440e-4)
    log: Floats = m + (y - squared * np.float32(0.5)) + power * np.float32(0.693359375)
    return log


def _turn(low: NDArray[np.uint32]) -> tuple[Floats, Floats]:
    """Cosine and sine of pi/2 (quarter + fraction), quarter = the two high bits, fraction in [-1/2, 1/2)."""
    quarter = low >> 30
    t = ((low & 0x3FFFFFFF).astype(np.int32) - 0x20000000).astype(np.float32) * np.float32(_QUARTER)
    z = t * t
    sine = ((z * _SIN[0] + _SIN[1]) * z + _SIN[2]) * z * t + t
    cosine = ((z * _COS[0] + _COS[1]) * z + _COS[2]) * z * z - z * np.float32(0.5) + 1
    odd = (quarter & 1) == 1
    x, y = np.where(odd, sine, cosine), np.where(odd, cosine, sine)
    return np.where((quarter == 1) | (quarter == 2), -x, x), np.where(quarter >= 2, -y, y)


# ---- Triton ----

LANES = 256


def lanes(blocks: int) -> int:
    """Blocks of one program."""
    return min(LANES, power_of_two(blocks))


@jit
def _round(c0: tl.tensor, c1: tl.tensor, c2: tl.tensor, c3: tl.tensor, k0: tl.tensor, k1: tl.tensor) -> tl.tensor:
    m0 = tl.full(c0.shape, 0xD2E7470EE14C6C93, tl.uint64)
    m1 = tl.full(c0.shape, 0xCA5A826395121157, tl.uint64)
    return tl.umulhi(m1, c2) ^ c1 ^ k0, m1 * c2, tl.umulhi(m0, c0) ^ c3 ^ k1, m0 * c0


@jit
def philox_words(block: tl.tensor, key: tl.tensor) -> tl.tensor:
    """Four uint64 words of every block of the row whose key is at `key`."""
    k0 = tl.load(key).to(tl.uint64, bitcast=True) + tl.zeros(block.shape, tl.uint64)
    k1 = tl.load(key + 1).to(tl.uint64, bitcast=True) + tl.zeros(block.shape, tl.uint64)
    c0 = (block + 1).to(tl.uint64)
    c1 = tl.zeros(block.shape, tl.uint64)
    c2 = tl.load(key + 2).to(tl.uint64, bitcast=True) + c1
    c3 = tl.load(key + 3).to(tl.uint64, bitcast=True) + c1
    w0 = tl.full(block.shape, 0x9E3779B97F4A7C15, tl.uint64)
    w1 = tl.full(block.shape, 0xBB67AE8584CAA73B, tl.uint64)
    for _ in tl.static_range(10):
        c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
        k0 += w0
        k1 += w1
    return c0, c1, c2, c3


@jit
def normals(word: tl.tensor) -> tl.tensor:
    """Two normal values of every word; the reference operation by operation."""
    x = ((word >> 33).to(tl.int32) | 1).to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    mantissa = (bits & 0x7FFFFF | 0x3F800000).to(tl.float32, bitcast=True)
    above = mantissa > 1.41421356
    m = tl.where(above, mantissa * 0.5, mantissa) - 1.0
    power = ((bits >> 23) - 158 + above.to(tl.int32)).to(tl.float32)
    squared = m * m
    y = m * 7.0376836292e-2 + -1.1514610310e-1
    y = y * m + 1.1676998740e-1
    y = y * m + -1.2420140846e-1
    y = y * m + 1.4249322787e-1
    y = y * m + -1.6668057665e-1
    y = y * m + 2.0000714765e-1
    y = y * m + -2.4999993993e-1
    y = y * m + 3.3333331174e-1
    y = y * m * squared + power * -2.12194440e-4
    log = m + (y - squared * 0.5) + power * 0.693359375
    radius = tl.sqrt_rn(tl.maximum(log * -2.0, 0.0))
    low = (word & 0xFFFFFFFF).to(tl.uint32)
    quarter = low >> 30
    t = ((low & 0x3FFFFFFF).to(tl.int32) - 0x20000000).to(tl.float32) * 1.4629180792671596e-09
    z = t * t
    sine = ((z * -1.9515295891e-4 + 8.3321608736e-3) * z + -1.6666654611e-1) * z * t + t
    cosine = ((z * 2.443315711809948e-5 + -1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - z * 0.5 + 1.0
    odd = (quarter & 1) == 1
    a = tl.where(odd, sine, cosine)
    b = tl.where(odd, cosine, sine)
    a = tl.where((quarter == 1) | (quarter == 2), -a, a)
    b = tl.where(quarter >= 2, -b, b)
    return radius * a, radius * b


@jit
def _kernel(out: tl.tensor, keys: tl.tensor, count: tl.tensor, blocks: tl.tensor, BLOCK: tl.constexpr) -> None:
    """A program: BLOCK blocks of one row."""
    row = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    words = philox_words(at, keys + row * 4)
    to = out + row.to(tl.int64) * count + at
    for word in tl.static_range(4):
        first, second = normals(words[word])
        place = at + 2 * word * blocks
        tl.store(to + 2 * word * blocks, first, (at < blocks) & (place < count))
        tl.store(to + (2 * word + 1) * blocks, second, (at < blocks) & (place + blocks < count))


def builds() -> list[Build]:
    types = {"out": "*fp32", "keys": "*i64", "count": "i32", "blocks": "i32"}
    return [Build(_kernel, types, {"BLOCK": LANES}, 4, "exact", options={"enable_fp_fusion": False})]
