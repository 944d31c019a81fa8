"""One room's stream: each frame is packetized once, and the bitrate suits every viewer.

Knows viewers only by what they report; each viewer pushes its own packets, so that a slow one delays nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ...engine.api import Frame
from .bitrate import ViewerEstimate, next_target
from .packets import payloads_of


@dataclass(frozen=True, slots=True)
class BitrateRange:
    """Bounds of the encoder's target in kbit/s."""

    floor: int
    ceiling: int


class Fanout:
    """See the module docstring. `set_bitrate(session, kbps)` reaches the encoder. `reports`: what viewers can take."""

    def __init__(self, bitrate: BitrateRange, set_bitrate: Callable[[str, int], None]) -> None:
        self.reports: set[Callable[[], ViewerEstimate]] = set()
        self._bitrate = bitrate
        self._set_bitrate = set_bitrate
        self._frame: Frame | None = None
        self._payloads: tuple[bytes, ...] = ()
        self._octets = 0
        self.kbps = bitrate.ceiling
        self.sent_kbps = 0

    def payloads(self, frame: Frame) -> tuple[bytes, ...]:
        """RTP payloads of a frame, made on the first call for it."""
        if frame is not self._frame:
            self._frame = frame
            self._payloads = payloads_of(frame.data)
            self._octets += len(frame.data)
        return self._payloads

    def settle_bitrate(self, seconds: float) -> None:
        """Once every `seconds`: move the target by what the viewers reported."""
        self.sent_kbps = int(self._octets * 8 / 1000 / seconds)
        self._octets = 0
        if self._frame is None or not self.reports:
            return
        estimates = [report() for report in self.reports]
        target = next_target(self.kbps, self.sent_kbps, estimates, self._bitrate.floor, self._bitrate.ceiling)
        if target != self.kbps:
            self.kbps = target
            self._set_bitrate(self._frame.session, target)
