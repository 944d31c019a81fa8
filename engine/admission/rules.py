"""Whether a session may come in: everything it needs is reserved, or nothing is and the refusal says why. Pure.

Compute is a share of one device: conservative price of a chunk / seconds a chunk lasts. Guaranteed classes
(interactive, stream) fill at most `share_cap`; a background session reserves a trickle, its ageing's worth, and runs in
the slack of the others. An empty device takes one session whatever it costs: alone it may be slow, but harms nobody.
"""

from dataclasses import dataclass

from ..api import LatencyClass, RefusalReason, Shortage, Unit

TRICKLE = 0.05


@dataclass(frozen=True, slots=True)
class Demand:
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
class Headroom:
    """What is there: `share_used` of the whole device, slots of the card, bytes of the device; all three count those
    in front in the line as if they were in."""

    share_used: float
    share_cap: float
    slots_used: int
    slots: int
    bytes_used: int
    bytes_budget: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal, for a person and in figures; it has figures when time alone may change it."""

    reason: RefusalReason
    detail: str
    figures: Shortage | None = None


def refuse(need: Demand, room: Headroom) -> Refusal | None:
    """None = it fits with everything that is already there, at conservative prices."""
    if need.bytes > room.bytes_budget:
        detail = f"a session needs {need.bytes} bytes, the device has {room.bytes_budget} for all of them"
        return Refusal(RefusalReason.NO_MEMORY, detail)
    if room.slots_used >= room.slots:
        taken = Shortage(1, room.slots_used, room.slots, Unit.PLACES)
        return Refusal(RefusalReason.NO_SLOT, f"all {room.slots} places are taken", taken)
    if room.bytes_used + need.bytes > room.bytes_budget:
        free = max(0, room.bytes_budget - room.bytes_used)
        detail = f"a session needs {need.bytes} bytes, {free} of {room.bytes_budget} are free"
        return Refusal(
            RefusalReason.NO_MEMORY, detail, Shortage(need.bytes, room.bytes_used, room.bytes_budget, Unit.BYTES)
        )
    share = need.share
    if room.share_used > 0 and room.share_used + share > room.share_cap + 1e-9:
        detail = f"a session takes {share:.0%} of the device, {room.share_used:.0%} of {room.share_cap:.0%} is in use"
        return Refusal(RefusalReason.NO_COMPUTE, detail, Shortage(share, room.share_used, room.share_cap, Unit.SHARE))
    return None


def choices(asked: int | None, default: int, allowed: tuple[int, ...]) -> tuple[int, ...]:
    """Denoise steps to try, dearest first: what was asked for, or the default and every cheaper one of the recipe."""
    if asked is not None:
        return (asked,)
    return (default, *sorted((steps for steps in allowed if steps < default), reverse=True))
