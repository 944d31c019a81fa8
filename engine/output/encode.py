"""H.264 for one session: frames in, Annex-B out, encoded once whoever watches. Blocking; call it on an encoder thread.

Constrained baseline level 3.1 (profile-level-id 42e01f), no frame of delay, parameter sets before every key frame, key
frames only when asked for. VBV bounds every frame, so a key frame is no burst. Also the gate that turns many key
requests into few. Knows no playout clock.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import av
import numpy as np
import numpy.typing as npt
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType

from ...models.contract.card import FrameSpec
from .pixels import CHROMA_MIDWAY, mark, shown, size
from .playout import TICKS

VBV_FRAMES = 3
KEY_SPACING = 0.3
_SPS_BASELINE = b"\x00\x00\x01\x67\x42\xc0"
_SPS_CONSTRAINED = b"\x00\x00\x01\x67\x42\xe0"


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """One access unit."""

    data: bytes
    key: bool


def encoder_threads(count: int) -> ThreadPoolExecutor:
    """For the first rendition of all sessions of an engine."""
    return ThreadPoolExecutor(count, thread_name_prefix="encode")


class RenditionEncoder(Protocol):
    """Of one rendition; blocking."""

    def encode(self, picture: npt.NDArray[np.uint8], pts: int, key: bool) -> EncodedFrame: ...

    def set_bitrate(self, kbps: int) -> None: ...


class H264Encoder:
    """One x264 context: `kbps` to start with, never above `kbps_max`. A frame is at most `frame_bytes_max` long.

    `half`: half as wide and high as the card's frames are shown.
    """

    def __init__(self, frame: FrameSpec, kbps: int, kbps_max: int, half: bool = False) -> None:
        self._frame, self._half = frame, half
        self._kbps_max = kbps_max
        # x264 needs a buffer of at least one frame at the ceiling.
        self._vbv_bits = max(VBV_FRAMES * kbps, kbps_max) * 1000 // frame.fps
        self._context = self._open()
        self.set_bitrate(kbps)

    @property
    def frame_bytes_max(self) -> int:
        return self._vbv_bits // 8

    def encode(self, picture: npt.NDArray[np.uint8], pts: int, key: bool) -> EncodedFrame:
        """Encode one frame as the card makes them; RGB is enlarged and converted before."""
        frame = self._frame
        planes = shown(picture, frame, self._half)
        planes.pts, planes.time_base = pts, Fraction(1, TICKS)
        planes.pict_type = PictureType.I if key else PictureType.NONE
        packets = self._context.encode(planes)
        if len(packets) != 1:
            raise RuntimeError(
                f"x264 kept a frame back: {len(packets)} packets for one {frame.width}x{frame.height} frame"
            )
        is_key = packets[0].is_keyframe
        data = bytes(packets[0])
        return EncodedFrame(data.replace(_SPS_BASELINE, _SPS_CONSTRAINED, 1) if is_key else data, is_key)

    def set_bitrate(self, kbps: int) -> None:
        """Aim at another rate from the next frame on; no new key frame."""
        self._context.bit_rate = max(100, min(kbps, self._kbps_max)) * 1000

    def _open(self) -> VideoCodecContext:
        frame = self._frame
        context = av.CodecContext.create("libx264", "w")
        assert isinstance(context, VideoCodecContext)
        context.width, context.height = size(frame, self._half)
        context.pix_fmt = "yuv420p"
        mark(context)
        context.time_base, context.framerate = Fraction(1, TICKS), Fraction(frame.fps, 1)
        # Only a stream that starts as CBR (bit rate = maxrate) follows a changed bit rate, and never above the first.
        context.bit_rate = self._kbps_max * 1000
        context.thread_count = 1
        context.options = {
            "preset": "ultrafast",
            "tune": "zerolatency",
            "profile": "baseline",
            "level": "3.1",
            "forced-idr": "1",
            "maxrate": str(self._kbps_max * 1000),
            "bufsize": str(self._vbv_bits),
            "x264-params": f"keyint=infinite:scenecut=0:repeat-headers=1:{CHROMA_MIDWAY}",
        }
        context.open()
        return context


class KeyGate:
    """When a wanted key frame is made: at most one per 300 ms, except that a joining viewer passes once."""

    def __init__(self) -> None:
        self._wanted = False
        self._passes = False
        self._last_key = float("-inf")
        self._last_pass = float("-inf")

    def request(self, joined: bool, now: float) -> None:
        self._wanted = True
        if joined and now - self._last_pass >= KEY_SPACING:
            self._passes = True

    def broken(self) -> None:
        """An encoded frame was thrown away: nothing decodes before the next key frame, so it must come at once."""
        self._wanted = self._passes = True

    @property
    def wanted(self) -> bool:
        return self._wanted

    def opens(self, now: float) -> bool:
        """Whether the frame encoded now should be a key frame."""
        return self._wanted and (self._passes or now - self._last_key >= KEY_SPACING)

    def made(self, now: float) -> None:
        """A key frame was encoded, asked for or not: it serves everyone who waited."""
        if self._passes:
            self._last_pass = now
        self._wanted = self._passes = False
        self._last_key = now
