"""What the path to one viewer takes, told by the sender from transport-wide feedback.

    each packet that leaves: a number, its time and size -> feedback: which arrived, when -> load -> rate

The rate is None until the path was once overfull. From then on it goes by draft-ietf-rmcat-gcc-02, 5.5: down to a share
of what arrives, up by a share a second, and slowly near where it was too much. One thing differs: it may rise although
less is sent. An encoder sends what its pictures need, and what is too much is known at once. A path so narrow that its
queue is full after two frames shows no growth, only loss.
"""

from collections import deque
from dataclasses import dataclass

from .delay_trend import DelayTrend, Load
from .transport_feedback import Arrivals

HISTORY = 2048
"""Packets: eight seconds of a full stream."""
WINDOW_S = 0.5
TELLING_KBPS = 200
"""A stream of fewer bits fills no path; its delays are other people's, or the receiver's pauses."""
LOST_MUCH = 0.3
"""In half a second: more than chance loses, whatever the delays say."""
KEEPS = 0.85
CLIMB = 1.08
NEAR = 0.10
"""Around the rate that was too much."""
NEAR_STEP_KBPS = 24.0
"""A second there: half a packet for each response time."""
FORGET_KBPS = 50_000.0
AGAIN_S = 0.2
"""Between two moves down: what the first did has to be seen."""


class RateWindow:
    """Bits of the last half second."""

    def __init__(self) -> None:
        self._parts: deque[tuple[float, int]] = deque()
        self._octets = 0

    def add(self, at: float, octets: int) -> None:
        self._parts.append((at, octets))
        self._octets += octets
        while self._parts[0][0] <= at - WINDOW_S or self._parts[0][0] > at + WINDOW_S:
            self._octets -= self._parts.popleft()[1]

    @property
    def kbps(self) -> float:
        return self._octets * 8 / 1000 / WINDOW_S


@dataclass(slots=True)
class Departed:
    """One packet on its way, or of which the receiver has not heard."""

    number: int
    at: float
    octets: int
    missed: bool = False


class PathRate:
    """See the module docstring. Times in seconds of the sender's clock."""

    def __init__(self) -> None:
        self._number = 0
        self._departed: list[Departed | None] = [None] * HISTORY
        self._trend = DelayTrend()
        self._arrived = RateWindow()
        """By the receiver's clock; the others by ours."""
        self._known, self._delivered = RateWindow(), RateWindow()
        """What is known to have arrived or not, and of that what has."""
        self._heard_at: float | None = None
        self._fell_at = float("-inf")
        self._too_much: float | None = None
        self.kbps: float | None = None

    def depart(self, now: float, octets: int) -> int:
        """The transport sequence number of a packet that leaves."""
        number = self._number
        self._departed[number % HISTORY] = Departed(number, now, octets)
        self._number = (number + 1) & 0xFFFF
        return number

    def learn(self, arrivals: Arrivals, now: float) -> bool:
        """True when the path turned out to be overfull and the rate went down."""
        over = False
        for place, arrived in enumerate(arrivals.times):
            number = (arrivals.first + place) & 0xFFFF
            packet = self._departed[number % HISTORY]
            if packet is None or packet.number != number:
                continue
            if not packet.missed:
                self._known.add(packet.at, packet.octets)
            if arrived is None:
                packet.missed = True
                continue
            self._departed[number % HISTORY] = None  # a second report of it says nothing
            self._delivered.add(packet.at, packet.octets)
            self._arrived.add(arrived, packet.octets)
            self._trend.add(packet.at, arrived)
            over = over or self._trend.load is Load.OVER
        over = over or self._delivered.kbps < (1 - LOST_MUCH) * self._known.kbps
        passed, self._heard_at = now - (self._heard_at if self._heard_at is not None else now), now
        if over and self._known.kbps >= TELLING_KBPS:
            return self._fall(now)
        if self._trend.load is Load.NORMAL and self.kbps is not None:
            self._rise(self.kbps, min(1.0, passed))
        return False

    def _fall(self, now: float) -> bool:
        wanted = KEEPS * self._arrived.kbps
        if now - self._fell_at < AGAIN_S or (self.kbps is not None and wanted >= self.kbps):
            return False
        self._fell_at, self.kbps, self._too_much = now, wanted, self._arrived.kbps
        return True

    def _rise(self, kbps: float, seconds: float) -> None:
        limit = self._too_much
        if limit is not None and kbps > (1 + NEAR) * limit:
            limit = self._too_much = None
        near = limit is not None and kbps > (1 - NEAR) * limit
        rate = kbps + NEAR_STEP_KBPS * seconds if near else kbps * CLIMB**seconds
        self.kbps = rate if rate < FORGET_KBPS else None
