"""An encoder in virtual time: key frames are those the real one would make, packets are nine empty bytes.

A frame takes the seconds its card's sheet says, on one of as many threads as the engine has.
"""

import asyncio
import heapq
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..engine.output.encode import EncodedFrame, H264Encoder
from ..models.contract.card import FrameSpec
from .virtual_time import VirtualLoop


class BlankEncoder(H264Encoder):
    """Spends no time."""

    def __init__(self, frame: FrameSpec, kbps: int, kbps_max: int) -> None:
        self._fresh = True

    def encode(self, picture: npt.NDArray[np.uint8], pts: int, key: bool) -> EncodedFrame:
        key, self._fresh = key or self._fresh, False
        return EncodedFrame(bytes(9), key)

    def set_bitrate(self, kbps: int) -> None:
        pass


def encoder_of(seconds: Callable[[FrameSpec], float], threads: int) -> type[H264Encoder]:
    """Encoders that share `threads` threads and take `seconds` a frame. Needs a `VirtualLoop`."""
    free = [0.0] * threads

    class TimedEncoder(BlankEncoder):
        def __init__(self, frame: FrameSpec, kbps: int, kbps_max: int) -> None:
            super().__init__(frame, kbps, kbps_max)
            self._seconds = seconds(frame)

        def encode(self, picture: npt.NDArray[np.uint8], pts: int, key: bool) -> EncodedFrame:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            now = loop.time()
            ends = max(now, heapq.heappop(free)) + self._seconds
            heapq.heappush(free, ends)
            loop.spend(ends - now)
            return super().encode(picture, pts, key)

    return TimedEncoder
