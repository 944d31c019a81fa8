"""Who has a seat in a room: by participant, by token, connected or within the lease. Knows no wheel and no session."""

import asyncio
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from ..audience import Audience
from ..messages import Grant, Person
from ..rate import Rate
from ..session.inbox import Inbox
from .names import person_name
from .rights import Rights


class SeatRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    participant: str
    token: str
    name: str
    grant: Grant = Grant.DRIVER
    identity: str | None = None
    metadata: str = ""


@dataclass(slots=True)
class Seat:
    """One participant's seat. `inbox` belongs to its last connection; `lease` runs while there is none.

    `active_at`: when the participant did something last; a driver who does nothing is idle.
    """

    participant: str
    token: str
    name: str
    rights: Rights
    inbox: Inbox
    active_at: float = 0.0
    lease: asyncio.TimerHandle | None = None
    uploads: Rate = field(default_factory=lambda: Rate(per_s=0.5, burst=3))

    def end_lease(self) -> None:
        if self.lease is not None:
            self.lease.cancel()
            self.lease = None


class Seats:
    """In the order in which they were taken. The audience knows which of them are connected."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._seats: dict[str, Seat] = {}

    def __len__(self) -> int:
        return len(self._seats)

    def __iter__(self) -> Iterator[Seat]:
        return iter(tuple(self._seats.values()))

    def add(self, participant: str, token: str, wish: str | None, rights: Rights, inbox: Inbox) -> Seat:
        """`wish`: the name to be known by, unless the rights say it."""
        name = person_name(participant, rights.name or wish, [seat.name for seat in self])
        seat = self._seats[participant] = Seat(participant, token, name, rights, inbox)
        return seat

    def of(self, participant: str | None) -> Seat | None:
        return None if participant is None else self._seats.get(participant)

    def of_identity(self, identity: str) -> Seat | None:
        return next((seat for seat in self if seat.rights.identity == identity), None)

    def of_token(self, token: str) -> Seat | None:
        given = token.encode()
        return next((seat for seat in self if secrets.compare_digest(seat.token.encode(), given)), None)

    def people(self) -> tuple[Person, ...]:
        """Who is connected, as the room may know them: not who only records."""
        seen = (seat for seat in self.connected() if seat.rights.grant is not Grant.RECORDER)
        return tuple(Person(seat.participant, seat.name, seat.rights.grant, seat.rights.metadata) for seat in seen)

    def connected(self) -> tuple[Seat, ...]:
        return tuple(seat for seat in self if seat.participant in self._audience)

    def longest_absent(self, but: Collection[str]) -> Seat | None:
        """Whose lease ends first, `but` not of those participants."""
        absent = (seat for seat in self if seat.lease is not None and seat.participant not in but)
        return min(absent, key=lambda seat: seat.lease.when() if seat.lease is not None else 0.0, default=None)

    def remove(self, seat: Seat) -> None:
        seat.end_lease()
        del self._seats[seat.participant]

    def clear(self) -> None:
        for seat in self:
            self.remove(seat)

    def record(self) -> tuple[SeatRecord, ...]:
        return tuple(_recorded(seat) for seat in self)

    def restore(self, records: Sequence[SeatRecord], inbox: Callable[[], Inbox]) -> None:
        """Be what was recorded; nobody is connected."""
        for record in records:
            rights = Rights(record.grant, record.identity, metadata=record.metadata)
            seat = Seat(record.participant, record.token, record.name, rights, inbox())
            self._seats[seat.participant] = seat


def _recorded(seat: Seat) -> SeatRecord:
    rights = seat.rights
    return SeatRecord(seat.participant, seat.token, seat.name, rights.grant, rights.identity, rights.metadata)
