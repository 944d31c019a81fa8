"""Gaussian noise on a device: one row a key, the bits of philox.gaussian on a CPU and on a GPU, in any batch.

The kernel does the float operations of philox.py one by one and is built without fused multiply-adds, so nothing is
left to a device's own functions.
Moved: 4 bytes a value; about 30 float and 40 integer operations a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from . import philox
from .backend import Backend, Build, Choice, choice, jit, power_of_two, runs_triton, tl
from .checks import expect
from .philox import WORD, NoiseKey, blocks_of
from .upload import upload


def gaussian(
    keys: Sequence[NoiseKey], shape: tuple[int, ...], device: torch.device, *, backend: Backend | None = None
) -> Tensor:
    """Float32 [rows, *shape], row i from keys[i] alone. Raises ValueError on no keys, a negative chunk or step."""
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
        out = upload(torch.stack([reference(key, count) for key in keys]), device)
    return out.reshape(len(keys), *shape)


def choose(device: torch.device) -> Choice:
    return choice(device, [])


def check_keys(keys: Sequence[NoiseKey]) -> None:
    expect(len(keys) > 0, "no keys")
    for key in keys:
        philox.check(key)


def key_words(keys: Sequence[NoiseKey], device: torch.device) -> Tensor:
    """Int64 [rows, 4]: seed, branch, chunk, step + 1, modulo 2**64."""
    words = [[key.seed & WORD, key.branch & WORD, key.chunk & WORD, (key.step + 1) & WORD] for key in keys]
    return upload(torch.from_numpy(np.array(words, np.uint64).view(np.int64)), device)


def reference(key: NoiseKey, count: int) -> Tensor:
    """Float32 [count] on the CPU, by numpy: torch's square root on a CPU may be a step off."""
    return torch.from_numpy(philox.gaussian(key, (count,)))


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
    """Two normal values of every word; philox.py float operation by float operation."""
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
