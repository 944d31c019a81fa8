"""Latency as a participant sees it: presses, frames and receipts in, distributions out. Reads no clock.

Motion-to-photon of a press = the moment the first frame that contains it was decoded, minus the moment it was pressed;
both on this client's clock, so nothing has to be synchronized.
"""

from collections import deque

import msgspec

PRESSES_MAX = 4096
SAMPLES_MAX = 1_000_000


class LatencySpread(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds of `count` samples (0 where there are none)."""

    p50: float
    p95: float
    p99: float
    min: float
    max: float
    count: int


def spread(samples: list[float]) -> LatencySpread:
    """Nearest-rank percentiles."""
    if not samples:
        return LatencySpread(0.0, 0.0, 0.0, 0.0, 0.0, 0)
    ordered = sorted(samples)

    def rank(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return LatencySpread(rank(0.5), rank(0.95), rank(0.99), round(ordered[0], 3), round(ordered[-1], 3), len(ordered))


class LatencyLog:
    """See the module docstring. All times are seconds on one monotonic clock of the caller's."""

    def __init__(self) -> None:
        self._presses: deque[tuple[int, float]] = deque(maxlen=PRESSES_MAX)
        self._last_frame: float | None = None
        self.first_frame: float | None = None
        self.intervals_ms: deque[float] = deque(maxlen=SAMPLES_MAX)
        self.photon_ms: deque[float] = deque(maxlen=SAMPLES_MAX)
        self.frames = 0

    def pressed(self, seq: int, at: float) -> None:
        self._presses.append((seq, at))

    def decoded(self, at: float) -> None:
        """A frame was decoded, whatever it contains."""
        self.frames += 1
        if self._last_frame is None:
            self.first_frame = at
        else:
            self.intervals_ms.append((at - self._last_frame) * 1000)
        self._last_frame = at

    def contains(self, input_seq: int, decoded_at: float) -> None:
        """The frame decoded then contains all inputs up to `input_seq`."""
        while self._presses and self._presses[0][0] <= input_seq:
            _, pressed_at = self._presses.popleft()
            self.photon_ms.append((decoded_at - pressed_at) * 1000)

    def reconnected(self) -> None:
        """The time between two connections is no frame interval."""
        self._last_frame = None if self._last_frame is None else float("nan")

    @property
    def intervals(self) -> LatencySpread:
        return spread([value for value in self.intervals_ms if value == value])

    @property
    def photon(self) -> LatencySpread:
        return spread(list(self.photon_ms))
