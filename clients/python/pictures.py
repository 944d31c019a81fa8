"""Whole H.264 frames to pictures with receipts: decodes at once, joins by RTP timestamp, hands on in order.

Decodes on the caller's loop (well under a millisecond at these sizes). Knows no connection.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import av

from ...rtc.wire import Receipt
from .latency import LatencyLog

FRAMES_KEPT = 8
RECEIPTS_KEPT = 64
UNJOINED_MAX = 8


@dataclass(frozen=True, slots=True)
class RoomFrame:
    """One frame, decoded at `decoded_at`; handed on once its receipt is here (spectators get bundles).

    `picture` is None for clients that do not decode, `receipt` where it was lost on its unreliable channel.
    """

    rtp: int
    picture: av.VideoFrame | None
    receipt: Receipt | None
    decoded_at: float


@dataclass(slots=True)
class PictureCounts:
    """`dropped`: frames that nobody took in time."""

    frames: int = 0
    receipts: int = 0
    dropped: int = 0
    undecodable: int = 0


class Pictures:
    """See the module docstring. `picture_lost` is called when a frame cannot be decoded."""

    def __init__(self, decode: bool, latency: LatencyLog, picture_lost: Callable[[], None]) -> None:
        self._decode = decode
        self._latency = latency
        self._picture_lost = picture_lost
        self._decoder: av.VideoCodecContext | None = None
        self._unjoined: deque[RoomFrame] = deque()
        self._receipts: dict[int, Receipt] = {}
        self._frames: asyncio.Queue[RoomFrame | None] = asyncio.Queue(FRAMES_KEPT)
        self.counts = PictureCounts()
        self.tap_frame: Callable[[int, bytes, bool], object] | None = None
        self.on_joined: Callable[[RoomFrame], None] | None = None

    def whole_frame(self, rtp: int, data: bytes, key: bool) -> None:
        """One frame as it was sent, in order."""
        if self.tap_frame is not None:
            self.tap_frame(rtp, data, key)
        picture = self._decoded(data, key) if self._decode else None
        if self._decode and picture is None:
            return
        now = time.monotonic()
        self.counts.frames += 1
        self._latency.decoded(now)
        self._unjoined.append(RoomFrame(rtp, picture, None, now))
        self._join_receipts()

    def explain(self, receipts: tuple[Receipt, ...]) -> None:
        """Receipts, before or after their frames."""
        for receipt in receipts:
            self.counts.receipts += 1
            self._receipts[receipt.rtp] = receipt
            while len(self._receipts) > RECEIPTS_KEPT:
                del self._receipts[next(iter(self._receipts))]
        self._join_receipts()

    async def next(self) -> RoomFrame | None:
        """The next frame, None at the end."""
        return await self._frames.get()

    def end(self) -> None:
        self._hand_on(None)

    @property
    def settled(self) -> bool:
        """Nothing waits for its receipt."""
        return not self._unjoined

    def _decoded(self, data: bytes, key: bool) -> av.VideoFrame | None:
        if self._decoder is None:
            self._decoder = av.VideoCodecContext.create("h264", "r")
            self._decoder.thread_count = 1
        try:
            pictures = self._decoder.decode(av.Packet(data))
        except av.FFmpegError:
            pictures = []
        if pictures:
            return pictures[-1]
        self.counts.undecodable += 1
        if not key:
            self._picture_lost()
        return None

    def _join_receipts(self) -> None:
        """Hand frames on in order, each with its receipt; one whose receipt seems lost goes without."""
        while self._unjoined:
            frame = self._unjoined[0]
            receipt = self._receipts.pop(frame.rtp, None)
            later = any(other.rtp in self._receipts for other in self._unjoined)
            if receipt is None and not later and len(self._unjoined) < UNJOINED_MAX:
                return
            self._unjoined.popleft()
            joined = RoomFrame(frame.rtp, frame.picture, receipt, frame.decoded_at)
            if receipt is not None:
                self._latency.contains(receipt.input_seq, frame.decoded_at)
            if self.on_joined is not None:
                self.on_joined(joined)
            self._hand_on(joined)

    def _hand_on(self, frame: RoomFrame | None) -> None:
        if self._frames.full():
            self._frames.get_nowait()
            self.counts.dropped += 1
        self._frames.put_nowait(frame)
