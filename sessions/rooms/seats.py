"""Who has a place in a room: by participant, by token, connected or within the lease. Knows no wheel and no session."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from ..messages import Person
from ..people import name_of
from .participant import Participant
from .suspend_store import SeatRecord


@dataclass(slots=True)
class Seat:
    """One participant's place. `member` None = not connected, `lease` runs."""

    participant: str
    token: str
    name: str
    member: Participant | None = None
    lease: asyncio.TimerHandle | None = None

    def end_lease(self) -> None:
        if self.lease is not None:
            self.lease.cancel()
            self.lease = None


class Seats:
    """In the order in which they were taken."""

    def __init__(self) -> None:
        self._places: dict[str, Seat] = {}

    def __len__(self) -> int:
        return len(self._places)

    def new(self, participant: str, token: str, wish: str | None) -> Seat:
        """`wish`: the name to be known by."""
        name = name_of(participant, wish, [place.name for place in self._places.values()])
        place = self._places[participant] = Seat(participant, token, name)
        return place

    def of(self, participant: str) -> Seat | None:
        return self._places.get(participant)

    def of_token(self, token: str) -> Seat | None:
        given = token.encode()
        return next((p for p in self._places.values() if secrets.compare_digest(p.token.encode(), given)), None)

    def member(self, participant: str) -> Participant | None:
        """Who is connected at that participant's place."""
        place = self._places.get(participant)
        return None if place is None else place.member

    def members(self) -> list[Participant]:
        """Who is connected."""
        return [place.member for place in self._places.values() if place.member is not None]

    def people(self) -> tuple[Person, ...]:
        """Who is connected, as the room may know them."""
        here = (place for place in self._places.values() if place.member is not None)
        return tuple(Person(participant=place.participant, name=place.name) for place in here)

    def longest_absent(self, but: str | None) -> Seat | None:
        """Whose lease ends first, `but` not of that participant."""
        absent = (place for place in self._places.values() if place.member is None and place.participant != but)
        return min(absent, key=lambda p: p.lease.when() if p.lease is not None else 0.0, default=None)

    def remove(self, place: Seat) -> None:
        place.end_lease()
        del self._places[place.participant]

    def clear(self) -> None:
        for place in self._places.values():
            place.end_lease()
        self._places.clear()

    def recorded(self) -> tuple[SeatRecord, ...]:
        return tuple(SeatRecord(place.participant, place.token, place.name) for place in self._places.values())

    def bring_back(self, records: Sequence[SeatRecord]) -> list[Seat]:
        """The places that `recorded` gave, nobody connected."""
        places = [Seat(kept.participant, kept.token, kept.name) for kept in records]
        self._places.update((place.participant, place) for place in places)
        return places
