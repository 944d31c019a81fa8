"""VP8 for one session, for viewers who cannot decode H.264. Blocking; call it on an encoder thread.

No frame of delay, one thread (more spin on small machines), key frames only when asked for. libvpx takes another rate
only in a new context, which begins with a key frame: a lower rate that is far off is taken at once, any other one with
the next key frame that somebody wants.
"""

from fractions import Fraction

import av
import numpy as np
import numpy.typing as npt
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType

from ...models.contract.card import FrameSpec
from .encode import EncodedFrame
from .pixels import mark, shown, size
from .playout import TICKS

BUFFER_S = 0.2
INTRA_PERCENT = 300
"""A key frame's bits, of those that a frame has on average."""
FAR_OFF = 0.7
"""Of the present rate: below it a viewer would lose more by waiting than by a key frame."""
NO_END = 1 << 30


class Vp8Encoder:
    """See the module docstring. `half`: half as wide and high as the card's frames are shown."""

    def __init__(self, frame: FrameSpec, kbps: int, kbps_max: int, half: bool = False) -> None:
        self._frame, self._half, self._kbps_max = frame, half, kbps_max
        self._wanted = self._kbps = min(kbps, kbps_max)
        self._context = self._open()

    def encode(self, picture: npt.NDArray[np.uint8], pts: int, key: bool) -> EncodedFrame:
        """Encode one frame as the card makes them."""
        if self._wanted != self._kbps and (key or self._wanted < FAR_OFF * self._kbps):
            self._kbps = self._wanted
            self._context = self._open()
        planes = shown(picture, self._frame, self._half)
        planes.pts, planes.time_base = pts, Fraction(1, TICKS)
        planes.pict_type = PictureType.I if key else PictureType.NONE
        packets = self._context.encode(planes)
        if len(packets) != 1:
            raise RuntimeError(f"libvpx gave {len(packets)} packets for one frame")
        return EncodedFrame(bytes(packets[0]), packets[0].is_keyframe)

    def set_bitrate(self, kbps: int) -> None:
        self._wanted = max(100, min(kbps, self._kbps_max))

    def _open(self) -> VideoCodecContext:
        context = av.CodecContext.create("libvpx", "w")
        assert isinstance(context, VideoCodecContext)
        context.width, context.height = size(self._frame, self._half)
        context.pix_fmt = "yuv420p"
        mark(context)
        context.time_base, context.framerate = Fraction(1, TICKS), Fraction(self._frame.fps, 1)
        context.bit_rate = self._kbps * 1000
        context.gop_size = NO_END
        context.thread_count = 1
        context.options = {
            "deadline": "realtime",
            "cpu-used": "16",
            "lag-in-frames": "0",
            "auto-alt-ref": "0",
            "minrate": str(self._kbps * 1000),
            "maxrate": str(self._kbps * 1000),
            "bufsize": str(int(self._kbps * 1000 * BUFFER_S)),
            "max-intra-rate": str(INTRA_PERCENT),
        }
        context.open()
        return context
