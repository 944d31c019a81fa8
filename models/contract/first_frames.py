"""Pictures a world starts from, packed for the engine's door, the journal and a snapshot.

One picture starts a world from an image, several continue a video. Compressed without loss.
"""

import zlib

import msgspec
import numpy as np
from numpy.typing import NDArray

LEVEL = 1


class FirstFramesSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a card's worlds may start from: one picture of that size, or `frames` of a video."""

    width: int
    height: int
    frames: int


class FirstFrames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """uint8 RGB [frames, height, width, 3], row by row."""

    frames: int
    height: int
    width: int
    packed: bytes

    @classmethod
    def of(cls, frames_FHWC: NDArray[np.uint8]) -> "FirstFrames":
        """Packed; `unpack` gives the same bytes back."""
        frames, height, width, _ = frames_FHWC.shape
        return cls(frames, height, width, zlib.compress(np.ascontiguousarray(frames_FHWC).tobytes(), LEVEL))

    def unpack(self) -> NDArray[np.uint8]:
        """[F, H, W, 3], writable; raises ValueError when the bytes are not exactly that."""
        shape = (self.frames, self.height, self.width, 3)
        size = self.frames * self.height * self.width * 3
        inflate = zlib.decompressobj()
        try:
            data = inflate.decompress(self.packed, size + 1)
        except zlib.error as error:
            raise ValueError(f"first frames of {shape} cannot be unpacked: {error}") from error
        if len(data) != size or not inflate.eof:
            raise ValueError(f"first frames of {shape} have {size} bytes, these unpack to {len(data)} or more")
        return np.frombuffer(data, np.uint8).reshape(shape).copy()
