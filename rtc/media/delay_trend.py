"""Does the queue of a path grow? Told from when bursts of packets left and when they arrived, without common clocks.

    packets -> bursts -> delay of each against the one before -> summed, smoothed -> slope of a line -> load

Pure. Sources: draft-ietf-rmcat-gcc-02, 5.2 to 5.4 (bursts, adaptive threshold); the line in place of the draft's Kalman
filter, and its constants, as in Carlucci et al. 2017, "Congestion control for web real-time communication".
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum

BURST_S = 0.005
GAP_S = 3.0
"""Longer pauses, and clocks that jump, begin anew."""
SMOOTHING = 0.9
WINDOW, POINTS_MIN = 20, 5
GAIN, COUNT_MAX = 4.0, 60
OVERUSE_S = 0.010
THRESHOLD_MS, THRESHOLD_MIN, THRESHOLD_MAX = 12.5, 6.0, 600.0
RISES, SINKS = 0.0087, 0.039
"""Of the threshold towards the trend, a millisecond."""
OUTLIER_MS, STEP_MS_MAX = 15.0, 100.0


class Load(Enum):
    """Of a path: its queue empties, stays, or grows."""

    UNDER = "under"
    NORMAL = "normal"
    OVER = "over"


@dataclass(slots=True)
class Burst:
    """Packets that left together, or that arrived together because something had held them up."""

    began: float
    sent: float
    arrived: float

    def takes(self, sent: float, arrived: float) -> bool:
        held_up = arrived - self.arrived <= BURST_S and arrived - self.arrived < sent - self.sent
        return sent - self.began <= BURST_S or held_up


class DelayTrend:
    """See the module docstring. Packets are added in the order of sending; times in seconds, each side's own."""

    def __init__(self) -> None:
        self._threshold = THRESHOLD_MS
        self.load = Load.NORMAL
        self._restart()

    def _restart(self) -> None:
        self._before: Burst | None = None
        self._burst: Burst | None = None
        self._delay = self._smooth = 0.0
        self._line: deque[tuple[float, float]] = deque(maxlen=WINDOW)
        self._count = 0
        self._slope = 0.0
        self._over_s, self._over_count = 0.0, 0
        self.load = Load.NORMAL

    def add(self, sent: float, arrived: float) -> None:
        burst = self._burst
        if burst is not None and not -GAP_S < arrived - burst.arrived < GAP_S:
            self._restart()
            burst = None
        if burst is not None and burst.takes(sent, arrived):
            burst.sent, burst.arrived = sent, max(burst.arrived, arrived)
            return
        if burst is not None and self._before is not None:
            self._learn(self._before, burst)
        self._before, self._burst = burst, Burst(sent, sent, arrived)

    def _learn(self, before: Burst, burst: Burst) -> None:
        sent_s = burst.sent - before.sent
        self._delay += 1000 * (burst.arrived - before.arrived - sent_s)
        self._smooth = SMOOTHING * self._smooth + (1 - SMOOTHING) * self._delay
        self._line.append((1000 * burst.arrived, self._smooth))
        self._count = min(COUNT_MAX, self._count + 1)
        slope = _slope(self._line) if len(self._line) >= POINTS_MIN else 0.0
        trend = self._count * slope * GAIN
        self._judge(trend, slope, sent_s)
        self._adapt(trend, 1000 * (burst.arrived - before.arrived))
        self._slope = slope

    def _judge(self, trend: float, slope: float, sent_s: float) -> None:
        """Overuse is what lasts and does not get less."""
        if trend <= self._threshold:
            self._over_s, self._over_count = 0.0, 0
            self.load = Load.UNDER if trend < -self._threshold else Load.NORMAL
            return
        self._over_s += sent_s if self._over_count else sent_s / 2
        self._over_count += 1
        if self._over_s > OVERUSE_S and self._over_count > 1 and slope >= self._slope:
            self._over_s, self._over_count = 0.0, 0
            self.load = Load.OVER

    def _adapt(self, trend: float, ms: float) -> None:
        """So that what shares the path with flows that fill its queue does not starve; a single spike moves nothing."""
        if abs(trend) > self._threshold + OUTLIER_MS:
            return
        share = SINKS if abs(trend) < self._threshold else RISES
        moved = self._threshold + share * (abs(trend) - self._threshold) * min(max(0.0, ms), STEP_MS_MAX)
        self._threshold = min(THRESHOLD_MAX, max(THRESHOLD_MIN, moved))


def _slope(points: deque[tuple[float, float]]) -> float:
    """Of the line of least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    square = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / square if square else 0.0
