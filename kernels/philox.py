"""The numbers a world is drawn from: a pure function of (seed, branch, chunk, step), in any order and on any machine.

    words of a key:   Philox 4x64-10, key [seed | branch], counter [e + 1 | 0 | chunk | step + 1]  -> words 4e .. 4e+3
    normal values:    of a word the high half -> u in (0, 1], the low half -> angle;  r = sqrt(-2 ln u)
                      block e of four words -> r cos, r sin of each in turn: its eight values
    n values:         [ first value of every block | second | .. | eighth ] cut at n

No generator is kept, so no draw moves another. Logarithm, sine and cosine are polynomials of float32 multiplications
and additions in one order; numpy rounds each as IEEE says, and so does the kernel (noise.py) that gives the same bits
on a GPU. u has 31 bits, so |z| <= 6.56. Knows no tensor library and no model.
Sources: Philox (Salmon et al. 2011); Box and Muller (1958); polynomials of the Cephes library (Moshier).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Words = NDArray[np.uint64]

BLOCK_VALUES = 8
WORD = 2**64 - 1
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_SIN_COS = np.array(
    [
        [[-1.9515295891e-4], [2.443315711809948e-5]],
        [[8.3321608736e-3], [-1.388731625493765e-3]],
        [[-1.6666654611e-1], [4.166664568298827e-2]],
    ],
    np.float32,
)
_QUARTER = math.pi / 2 * 2.0**-30
_ROOT_HALF = 0x3F3504F4  # the float32 after sqrt(1/2), as an integer: mantissas are halved from twice this on
_SIGN = np.uint32(0x80000000)


class NoiseKey(NamedTuple):
    """Where noise may come from; nothing else may be added. Seed and branch count modulo 2**64."""

    seed: int
    branch: int
    chunk: int
    step: int


def check(key: NoiseKey) -> None:
    """Raises ValueError on a negative chunk or step."""
    if key.chunk < 0 or key.step < 0:
        raise ValueError(f"noise needs chunk >= 0 and step >= 0, got chunk {key.chunk} step {key.step}")


def words(key: NoiseKey, count: int) -> Words:
    """`count` uniform 64-bit words. Raises ValueError on a negative chunk or step."""
    check(key)
    return raw(key.seed, key.branch, (key.chunk & WORD) << 128 | ((key.step + 1) & WORD) << 192, count)


def raw(seed: int, branch: int, counter: int, count: int) -> Words:
    """`count` words under a 256-bit counter whose lowest 64 bits are zero. Noise keys own those with [192:256] > 0."""
    return np.random.Philox(key=(seed & WORD) | (branch & WORD) << 64, counter=counter).random_raw(count)


def integers(key: NoiseKey, shape: tuple[int, ...], below: int) -> NDArray[np.int64]:
    """Integers in [0, below), `below` <= 2**31: the modulo's bias stays under 2**-33."""
    if not 0 < below <= 2**31:
        raise ValueError(f"below must be in 1..2**31, got {below}")
    return (words(key, math.prod(shape)) % np.uint64(below)).astype(np.int64).reshape(shape)


def gaussian(key: NoiseKey, shape: tuple[int, ...]) -> Floats:
    """Standard normal values, float32."""
    count = math.prod(shape)
    blocks = blocks_of(count)
    word = words(key, 4 * blocks)
    log = _log(((word >> 33).astype(np.int32) | 1).astype(np.float32))
    radius = np.sqrt(np.maximum(log * -2.0, 0.0)).reshape(blocks, 4).T
    turn = _turn(word.astype(np.uint32)).reshape(2, blocks, 4).transpose(2, 0, 1)
    values: Floats = np.multiply(radius[:, None], turn, order="C").reshape(-1)  # [value of its block, block]
    return values[:count].reshape(shape)


def blocks_of(count: int) -> int:
    return -(-count // BLOCK_VALUES)


def _log(x_n: Floats) -> Floats:
    """ln(x / 2**31) of x in 1..2**31."""
    bits = x_n.view(np.int32) + (0x3F800000 - _ROOT_HALF)
    power = ((bits >> 23) - 158).astype(np.float32)
    bits &= 0x7FFFFF
    bits += _ROOT_HALF
    m = bits.view(np.float32) - 1.0  # of a mantissa in sqrt(1/2)..sqrt(2)
    squared, y = m * m, m * _LOG[0]
    for c in _LOG[1:-1]:
        y += c
        y *= m
    y += _LOG[-1]
    y *= m
    y *= squared
    y += power * -2.12194440e-4
    squared *= 0.5
    y -= squared
    m += y
    power *= 0.693359375
    m += power
    return m


def _turn(low_n: NDArray[np.uint32]) -> Floats:
    """[2, n]: cosine and sine of pi/2 (quarter + fraction), quarter = the two high bits, fraction in [-1/2, 1/2)."""
    t = ((low_n & 0x3FFFFFFF).view(np.int32) - 0x20000000).astype(np.float32)
    t *= _QUARTER
    z = t * t
    y_2n = z * _SIN_COS[0]
    y_2n += _SIN_COS[1]
    y_2n *= z
    y_2n += _SIN_COS[2]
    y_2n *= z
    sine, cosine = y_2n
    sine *= t
    sine += t
    cosine *= z
    cosine -= z * 0.5
    cosine += 1.0
    xy: Floats = np.where(low_n & 0x40000000 != 0, y_2n, y_2n[::-1])
    signs = xy.view(np.uint32)
    signs[0] ^= (low_n + np.uint32(0x40000000)) & _SIGN
    signs[1] ^= low_n & _SIGN
    return xy
