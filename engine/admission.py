"""Whether a session may come in: everything it needs is reserved, or nothing is and the refusal says why. Pure.

Compute is a share of one device: conservative price of a chunk / seconds a chunk lasts. Guaranteed classes
(interactive, stream) fill at most `share_cap`; a background session reserves a trickle, its ageing's worth, and runs in
the slack of the others. An empty device takes one session whatever it costs: alone it may be slow, but harms nobody.
"""

from collections import OrderedDict
from dataclasses import dataclass

from .api import LatencyClass, RefusalReason

TRICKLE = 0.05
WAITING_MAX = 64


@dataclass(frozen=True, slots=True)
class Need:
    """What one session would take."""

    latency_class: LatencyClass
    chunk_price: float
    chunk_seconds: float
    bytes: int

    @property
    def share(self) -> float:
        share = self.chunk_price / self.chunk_seconds
        return min(share, TRICKLE) if self.latency_class is LatencyClass.BACKGROUND else share


@dataclass(frozen=True, slots=True)
class Room:
    """What is there: `share_used` of the whole device, slots of the card, bytes of the device."""

    share_used: float
    share_cap: float
    slots_used: int
    slots: int
    bytes_used: int
    bytes_budget: int


@dataclass(frozen=True, slots=True)
class No:
    """A refusal and its figures, for a person."""

    reason: RefusalReason
    detail: str


def refuse(need: Need, room: Room) -> No | None:
    """None = it fits with everything that is already there, at conservative prices."""
    if room.slots_used >= room.slots:
        return No(RefusalReason.NO_SLOT, f"all {room.slots} places are taken")
    if room.bytes_used + need.bytes > room.bytes_budget:
        free = room.bytes_budget - room.bytes_used
        return No(
            RefusalReason.NO_MEMORY, f"a session needs {need.bytes} bytes, {free} of {room.bytes_budget} are free"
        )
    share = need.share
    if room.share_used > 0 and room.share_used + share > room.share_cap + 1e-9:
        return No(
            RefusalReason.NO_COMPUTE,
            f"a session takes {share:.0%} of the device, {room.share_used:.0%} of {room.share_cap:.0%} is in use",
        )
    return None


class WaitingList:
    """Who was refused lately, in order; a place is kept until its retry time has passed twice. Bounded."""

    def __init__(self, retry_after: float) -> None:
        self._retry_after = retry_after
        self._places: OrderedDict[str, float] = OrderedDict()

    def refused(self, session: str, now: float) -> tuple[int, float]:
        """(queue place from 1, seconds to wait before the next try)."""
        self._forget(now)
        if session not in self._places and len(self._places) >= WAITING_MAX:
            return WAITING_MAX + 1, self._retry_after * 10
        place = list(self._places).index(session) + 1 if session in self._places else len(self._places) + 1
        wait = self._retry_after * min(place, 10)
        self._places[session] = now + 2 * wait
        return place, wait

    def admitted(self, session: str) -> None:
        self._places.pop(session, None)

    def _forget(self, now: float) -> None:
        for session in [s for s, until in self._places.items() if until < now]:
            del self._places[session]
