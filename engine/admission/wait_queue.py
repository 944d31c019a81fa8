"""The line in front of a full device: who waits, in which order, and what those in front will take. Pure, bounded.

    asked by name -> [place at the end] -- as long as its client waits, for `GRACE` seconds between two attempts -->
    admitted | given up | forgotten

A place belongs to a name, which a client keeps from one attempt to the next. Nobody is admitted on what somebody in
front of them waits for.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from .rules import Demand

PLACES_MAX = 64
GRACE = 5.0


@dataclass(slots=True)
class _Place:
    card: str
    need: Demand
    until: float
    """Forgotten then; infinity while its client is here."""


class WaitQueue:
    """See the module docstring. Times are seconds on any clock that the caller keeps to."""

    def __init__(self, places_max: int = PLACES_MAX) -> None:
        self._places_max = places_max
        self._places: dict[str, _Place] = {}

    def length(self, now: float) -> int:
        self._forget(now)
        return len(self._places)

    def place(self, name: str, now: float) -> int:
        """From 1 in front; 0 = none."""
        self._forget(now)
        return next((number for number, other in enumerate(self._places, 1) if other == name), 0)

    def before(self, name: str, now: float) -> Iterator[tuple[str, Demand]]:
        """Card and need of everyone in front of that name; of all where it has no place."""
        self._forget(now)
        for other, place in self._places.items():
            if other == name:
                return
            yield place.card, place.need

    def take(self, name: str, card: str, need: Demand, now: float) -> bool:
        """A place at the end, for a first while; False when there is none."""
        self._forget(now)
        if len(self._places) >= self._places_max:
            return False
        self._places[name] = _Place(card, need, now + GRACE)
        return True

    def attach(self, name: str) -> None:
        """Its client waits from now on."""
        self._places[name].until = math.inf

    def detach(self, name: str, now: float) -> None:
        """Its client was answered and is expected to ask again."""
        if name in self._places:
            self._places[name].until = now + GRACE

    def leave(self, name: str) -> None:
        self._places.pop(name, None)

    def _forget(self, now: float) -> None:
        for name in [name for name, place in self._places.items() if place.until < now]:
            del self._places[name]
