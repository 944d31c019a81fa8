"""Which world that nobody attends gives way to who waits in line: one that holds what is waited for. Pure.

A world holds a place of its card and a share of the time of its device; one that sleeps holds neither. Memory is
divided into places, so it is not looked at by itself; but where cards take turns, one comes to the device when nobody
is in the worlds of those in its way any more.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...engine.api import Capacity, SessionInfo

EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Fleet:
    """What the engine tells of its devices and of the sessions there."""

    capacity: Sequence[Capacity]
    sessions: Sequence[SessionInfo]

    def gives_way(self, card: str, unattended: Sequence[str]) -> str | None:
        """The session to put aside so that one more of `card` comes nearer; None = none of them holds what it needs.

        `unattended`: in the order of going. The first that is enough by itself, else the first of a device where all
        of them together are.
        """
        held = {info.session: info for info in self.sessions if not info.asleep}
        standing = [held[name] for name in unattended if name in held]
        for info in standing:
            if self._fits(card, info.device, [info]):
                return info.session
        for info in standing:
            if self._fits(card, info.device, [other for other in standing if other.device == info.device]):
                return info.session
        return None

    def _fits(self, card: str, device: str, gone: Sequence[SessionInfo]) -> bool:
        """Whether one more of the card fits on that device when those sessions of it are gone."""
        there = {entry.card: entry for entry in self.capacity if entry.device == device}
        entry = there.get(card)
        if entry is None:
            return False
        if not _emptied(entry.in_the_way, there, gone):
            return False
        alike = sum(info.card == card for info in gone)
        places = entry.sessions - entry.asleep - alike
        freed = sum(there[info.card].share(info.price_us) for info in gone if info.card in there)
        share = max(0.0, sum(each.share_used for each in there.values()) - freed)
        needed = entry.share(entry.price_us)
        # One for one always goes: it may have been let in with fewer steps, and so may the next.
        enough = alike > 0 or share <= EPSILON or share + needed <= entry.share_max + EPSILON
        return places < entry.sessions_max and enough


def _emptied(cards: Sequence[str], there: Mapping[str, Capacity], gone: Sequence[SessionInfo]) -> bool:
    """Whether nobody is in the worlds of these cards any more."""
    left = Counter({card: there[card].sessions - there[card].asleep for card in cards if card in there})
    left.subtract(info.card for info in gone if info.card in left)
    return max(left.values(), default=0) <= 0
