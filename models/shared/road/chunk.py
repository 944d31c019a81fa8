"""How a chunk of a world of the road goes: one frame, the cache write of a frame fused with the next frame's start.

    chunk i:   [ commit i-1 + denoise at level 0 ]  [ denoise ]*  [ decode ]        Commit.PREVIOUS on the first step
    pending    carry.frames > ask.committed: frame i-1 is in the carry but its K and V are not committed yet

Between steps the noise implied by the prediction is kept and dimmed to the next level.
Legend: N tokens, P picture tokens, C channels, H/W picture. Knows no torch and no slots.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...contract.latents import Latents
from ...contract.loop import Ask, Outcome

Latent = NDArray[np.float32]
CarryT = TypeVar("CarryT")


class DecodeRow(msgspec.Struct, frozen=True):
    x_PC: Latent


class Decoded(msgspec.Struct, frozen=True):
    frame_HWC: NDArray[np.uint8]


def is_pending(ask: Ask[CarryT], frames: int) -> bool:
    """Whether the newest of so many frames must still be committed; raises ValueError on what cannot be."""
    if not 0 <= frames - ask.committed <= 1:
        raise ValueError(f"chunk {ask.chunk}: {frames} frames made, {ask.committed} of them committed")
    return frames > ask.committed


def check_opening(ask: Ask[CarryT]) -> None:
    """Raise ValueError where a world starts that has begun already."""
    if ask.committed:
        raise ValueError(f"chunk {ask.chunk} starts a world but {ask.committed} chunks are committed")


def next_noisy(x: Latent, x0: Latent, levels: tuple[float, ...], step: int) -> Latent:
    """What step `step` starts from, after the one before it made `x0` of `x`; after the last one x0 itself."""
    if step == len(levels):
        return x0
    level, lower = np.float32(levels[step - 1]), np.float32(levels[step])
    noise = (x - (1 - level) * x0) / level
    return np.asarray((1 - lower) * x0 + lower * noise, np.float32)


def onto(history_3: Latent, newest: Latent) -> Latent:
    """The newest three clean latents, newest first."""
    return np.concatenate([newest[None], history_3[:2]])


def outcome(chunk: int, frame_HWC: NDArray[np.uint8] | None, x: Latent, carry: CarryT) -> Outcome[CarryT]:
    """Of a decoded frame whose clean latent is `x`; raises ValueError before that."""
    if frame_HWC is None:
        raise ValueError(f"chunk {chunk} is not decoded yet")
    return Outcome(frame_HWC[None], carry, Latents.of(x))
