"""One room's stream: each frame is packetized once, key frames are asked for once, the bitrate suits every viewer.

Knows viewers only by what they report; each viewer pushes its own packets, so that a slow one delays nobody.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...clock import Clock
from ...engine.api import Frame
from .bitrate import ViewerEstimate, next_target
from .packets import payloads_of

KEY_INTERVAL = 0.3


class BitrateWatcher(Protocol):
    """A viewer as its room's stream sees it."""

    def estimate_now(self) -> ViewerEstimate: ...


@dataclass(frozen=True, slots=True)
class BitrateRange:
    """Bounds of the encoder's target in kbit/s."""

    floor: int
    ceiling: int


class KeyRequests:
    """Coalesces requests: at most one is passed on per 300 ms; one that came too early is passed on later, unless a
    key frame answers it before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = float("-inf")
        self._waiting: asyncio.TimerHandle | None = None
        self.passed_on = 0

    def ask(self, request: Callable[[], None], joined: bool = False) -> None:
        """`joined`: a new viewer has nothing to show until it is answered, so it does not wait."""
        due = self._last + KEY_INTERVAL - self._clock.now()
        if due <= 0 or joined:
            self._pass_on(request)
        elif self._waiting is None:
            self._waiting = asyncio.get_running_loop().call_later(due, self._pass_on, request)

    def answered(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _pass_on(self, request: Callable[[], None]) -> None:
        self.answered()
        self._last = self._clock.now()
        self.passed_on += 1
        request()


class Fanout:
    """See the module docstring. `set_bitrate(session, kbps)` reaches the encoder."""

    def __init__(self, clock: Clock, bitrate: BitrateRange, set_bitrate: Callable[[str, int], None]) -> None:
        self.keys = KeyRequests(clock)
        self.watchers: set[BitrateWatcher] = set()
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
            if frame.key:
                self.keys.answered()
        return self._payloads

    def settle_bitrate(self, seconds: float) -> None:
        """Once every `seconds`: move the target by what the viewers reported."""
        self.sent_kbps = int(self._octets * 8 / 1000 / seconds)
        self._octets = 0
        if self._frame is None or not self.watchers:
            return
        estimates = [watcher.estimate_now() for watcher in self.watchers]
        target = next_target(self.kbps, self.sent_kbps, estimates, self._bitrate.floor, self._bitrate.ceiling)
        if target != self.kbps:
            self.kbps = target
            self._set_bitrate(self._frame.session, target)

    def close(self) -> None:
        self.keys.answered()
        self.watchers.clear()
