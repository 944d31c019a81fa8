"""Counter-based noise: a pure function of (seed, branch, chunk, step), so any step replays alone, at any load.

Philox 4x64 with the key [seed | branch] and the counter [0 | 0 | chunk | step + 1]: no generator object is kept and
no draw moves another one. Knows no model and no tensor library.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_WORD = 2**64 - 1


class NoiseKey(NamedTuple):
    """Where noise may come from; nothing else may be added."""

    seed: int
    branch: int
    chunk: int
    step: int


def raw(key: NoiseKey, count: int) -> NDArray[np.uint64]:
    """`count` uniform 64-bit words. Raises ValueError on a negative chunk or step."""
    if key.chunk < 0 or key.step < 0:
        raise ValueError(f"noise needs chunk >= 0 and step >= 0, got chunk {key.chunk} step {key.step}")
    philox_key = (key.seed & _WORD) | ((key.branch & _WORD) << 64)
    counter = ((key.chunk & _WORD) << 128) | (((key.step + 1) & _WORD) << 192)
    return np.random.Philox(key=philox_key, counter=counter).random_raw(count)


def uniform(key: NoiseKey, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Uniform in [0, 1), 53 bits each."""
    words = raw(key, int(np.prod(shape)))
    return ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)


def gaussian(key: NoiseKey, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Standard normal by Box and Muller (1958), computed in float64: not tied to numpy's own normal stream."""
    count = int(np.prod(shape))
    pairs = uniform(key, (2, (count + 1) // 2))
    radius = np.sqrt(-2.0 * np.log1p(-pairs[0]))
    angle = 2.0 * np.pi * pairs[1]
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)])
    return both.reshape(-1)[:count].astype(np.float32).reshape(shape)


def integers(key: NoiseKey, shape: tuple[int, ...], below: int) -> NDArray[np.int64]:
    """Integers in [0, below), `below` <= 2**31: the modulo's bias stays under 2**-33."""
    if not 0 < below <= 2**31:
        raise ValueError(f"below must be in 1..2**31, got {below}")
    return (raw(key, int(np.prod(shape))) % np.uint64(below)).astype(np.int64).reshape(shape)
