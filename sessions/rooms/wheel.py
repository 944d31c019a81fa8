"""The wheel of a room: who holds it, who asked for it, and when somebody else may take it.

    free -- take --> held -- holder away for `AWAY_S` --> anybody may take it; who asked first gets it
                     held -- asked, and the holder idle for `IDLE_S` --> who asked first gets it

Whoever holds it steers the session from the next chunk on; everybody is told of every change. Where several drive
(`sessions/drivers.py`) it has as many places, each of which changes hands as above and has controls of its own.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ...clock import Clock
from ..audience import Audience
from ..drivers import PlaceSpec
from ..journal.events import DriverChanged
from ..messages import Accepted, Applied, Grant, Participants, PassWheel, PlaceView, Problem, RefuseWheel, Role
from ..session.helm import Hand
from ..session.session import Session
from .seats import Seats

AWAY_S = 8.0
"""So long a lost driver keeps the wheel."""
IDLE_S = 30.0
"""So long an idle driver keeps it from who asks."""
EARLY_S = 1e-3
"""A timer may be so much early."""


@dataclass(slots=True)
class Place:
    """`holder`: a participant, who may be away; None = nobody."""

    number: int
    spec: PlaceSpec
    holder: str | None = None
    away_since: float | None = None


class Wheel:
    """See the module docstring."""

    def __init__(
        self, session: Session, seats: Seats, audience: Audience, clock: Clock, places: Sequence[PlaceSpec]
    ) -> None:
        self._clock = clock
        self._session, self._seats, self._audience = session, seats, audience
        self._places = tuple(Place(number, spec) for number, spec in enumerate(places))
        self._asks: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    # ---- what a participant does ------------------------------------------------------------------------------------

    def pass_on(self, participant: str, message: PassWheel) -> Problem | None:
        """Hand the wheel over, let go of it, take a free one or ask for it; the problem when that is not possible."""
        place = self._place_of(participant)
        if place is not None:
            target = self._first_asking if message.to is None else message.to
            if target is not None and target not in self._audience:
                return Problem(code="unknown_participant", detail="nobody of that name is here", id=message.id)
            if target is not None and not self._may_drive(target):
                return Problem(code="may_not_drive", detail="their token lets them watch", id=message.id)
        elif message.to is not None:
            return Problem(code="not_driving", detail="only the driver hands over the wheel", id=message.id)
        elif not self._may_drive(participant):
            return Problem(code="may_not_drive", detail="your token lets you watch", id=message.id)
        elif (place := self._place_for(participant)) is not None:
            target = participant
        else:
            self._asks.setdefault(participant, message.id)
            self._audience.send(participant, Accepted(id=message.id))
            self._watch()
            self.announce()
            return None
        self._audience.send(participant, Accepted(id=message.id))
        self._give(place, target)
        self._audience.send(participant, Applied(id=message.id, chunk=self._session.next_chunk))
        self.announce()
        return None

    def refuse(self, participant: str, message: RefuseWheel) -> Problem | None:
        """Refuse who asked, or take the own question back; the problem when there is no such question."""
        if participant != message.to and not self.holds(participant):
            return Problem(code="not_driving", detail="only the driver refuses the wheel", id=message.id)
        asked = self._asks.pop(message.to, None)
        if asked is None:
            return Problem(code="not_asking", detail="that participant does not ask for the wheel", id=message.id)
        self._audience.send(participant, Accepted(id=message.id))
        if participant != message.to:
            self._audience.send(
                message.to, Problem(code="wheel_refused", detail="the driver keeps the wheel", id=asked)
            )
        self.announce()
        return None

    # ---- what happens to participants -------------------------------------------------------------------------------

    def welcome(self, participant: str) -> None:
        """Somebody new who comes to drive: does so where a place can be taken."""
        place = self._takeable()
        if place is not None:
            self._give(place, participant)

    def _give(self, place: Place, participant: str | None) -> None:
        """From now on that participant holds it, None = nobody; who held another place exchanges the two."""
        other = self._place_of(participant)
        if other is not None and other is not place:
            other.holder, other.away_since = place.holder, place.away_since
        before, asked = place.holder, self._asks.pop(participant or "", None)
        place.holder, place.away_since = participant, None
        self._session.record(DriverChanged(before, participant, place.number))
        seat = self._seats.of(participant)
        if seat is not None:
            seat.active_at = self._clock.now()
            if asked is not None:
                self._audience.send(seat.participant, Applied(id=asked, chunk=self._session.next_chunk))
        self._steer()
        self._watch()

    def let_go(self, participant: str) -> None:
        """That participant is gone for good: who asked first gets the wheel if it was theirs."""
        self._asks.pop(participant, None)
        place = self._place_of(participant)
        if place is not None:
            self._give(place, self._first_asking)

    def away(self, participant: str) -> None:
        """That participant's connection is gone; a holder keeps the wheel for a while."""
        self._asks.pop(participant, None)
        place = self._place_of(participant)
        if place is not None:
            place.away_since = self._clock.now()
            self._steer()
            self._watch()

    def back(self, participant: str) -> None:
        """That participant is connected again; a holder who was away goes on."""
        place = self._place_of(participant)
        if place is not None:
            place.away_since = None
            self._steer()
            self._watch()

    def record(self) -> tuple[str | None, ...]:
        """Who holds each place, for `restore`."""
        return tuple(place.holder for place in self._places)

    def restore(self, holders: tuple[str | None, ...]) -> None:
        """As it was suspended: whoever holds it is away."""
        for place, holder in zip(self._places, holders, strict=False):
            place.holder, place.away_since = holder, None if holder is None else self._clock.now()
        self._watch()

    def stand_down(self) -> None:
        """The room is over."""
        for place in self._places:
            place.holder, place.away_since = None, None
        self._asks.clear()
        self._watch()

    # ---- how things stand -------------------------------------------------------------------------------------------

    def role(self, participant: str) -> Role:
        return Role.DRIVER if self.holds(participant) else Role.SPECTATOR

    def holds(self, participant: str) -> bool:
        return self._place_of(participant) is not None

    @property
    def holders(self) -> tuple[str, ...]:
        return tuple(place.holder for place in self._places if place.holder is not None)

    @property
    def free(self) -> int:
        """Places that nobody holds."""
        return sum(place.holder is None for place in self._places)

    def announce(self) -> None:
        """Tell everybody who is here, who drives and who asks to."""
        people, asking, free_in_s = self._seats.people(), tuple(self._asks), self.free_in_s
        holders, places = self.holders, self._views()
        driver = holders[0] if holders else None
        spectators = sum(person.participant not in holders for person in people)
        for seat in self._seats.connected():
            you = self.role(seat.participant)
            told = Participants(driver, you, spectators, people, asking, free_in_s, holders, places)
            self._audience.send(seat.participant, told)

    @property
    def free_in_s(self) -> float | None:
        """Seconds until anybody may take it from a holder who is away; None while there is none or it is here."""
        return min((wait for place in self._places if (wait := self._back_in_s(place)) is not None), default=None)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _may_drive(self, participant: str) -> bool:
        seat = self._seats.of(participant)
        return seat is not None and seat.rights.grant.may_drive

    def _place_of(self, participant: str | None) -> Place | None:
        if participant is None:
            return None
        return next((place for place in self._places if place.holder == participant), None)

    def _takeable(self) -> Place | None:
        """One that nobody holds, else one whose holder has been away for too long."""
        free = (place for place in self._places if place.holder is None)
        left = (place for place in self._places if self._back_in_s(place) == 0.0)
        return next(free, None) or next(left, None)

    def _place_for(self, participant: str) -> Place | None:
        """One that this participant may take without asking."""
        return self._takeable() or next((place for place in self._places if self._outranks(participant, place)), None)

    def _outranks(self, participant: str, place: Place) -> bool:
        """A driver takes the wheel from a co-driver without asking."""
        own, driver = self._seats.of(participant), self._seats.of(place.holder)
        grants = None if own is None or driver is None else (own.rights.grant, driver.rights.grant)
        return grants == (Grant.DRIVER, Grant.CO_DRIVER)

    @property
    def _first_asking(self) -> str | None:
        return next(iter(self._asks), None)

    def _back_in_s(self, place: Place) -> float | None:
        """Seconds that are left to a holder who is away; None while nobody holds it or the holder is here."""
        if place.holder is None or place.away_since is None:
            return None
        return max(0.0, place.away_since + AWAY_S - self._clock.now())

    def _idle_in_s(self, place: Place) -> float | None:
        """Seconds until a holder who is here counts as idle; None while nobody holds it or the holder is away."""
        seat = self._seats.of(place.holder)
        if seat is None or seat.participant not in self._audience:
            return None
        return max(0.0, seat.active_at + IDLE_S - self._clock.now())

    def _steer(self) -> None:
        """Let the holders' connections steer the session; without any every key is up."""
        hands = []
        for place, controls in self._shares().items():
            seat = self._seats.of(self._places[place].holder)
            if seat is not None:
                hands.append(Hand(seat.participant, seat.inbox, self._places[place].spec.player, controls))
        self._session.helm.steer(tuple(hands))

    def _shares(self) -> dict[int, frozenset[int]]:
        """The controls of each place whose holder is here; what nobody is here for, the first of that player has."""
        here = [place for place in self._places if place.holder is not None and place.holder in self._audience]
        shares = {place.number: place.spec.controls for place in here}
        for player in {place.spec.player for place in here}:
            steered = [place for place in here if place.spec.player == player]
            lost = [place.spec.controls for place in self._places if place.spec.player == player and place not in here]
            shares[steered[0].number] = steered[0].spec.controls.union(*lost)
        return shares

    def _views(self) -> tuple[PlaceView, ...]:
        shares = self._shares()
        return tuple(
            PlaceView(place.holder, place.spec.player, tuple(sorted(shares.get(place.number, place.spec.controls))))
            for place in self._places
        )

    def _changes_in_s(self, place: Place) -> float | None:
        """Seconds until who asks gets it, or until anybody may take it; None while neither will be."""
        if place.away_since is not None:
            return self._back_in_s(place)
        return self._idle_in_s(place) if self._asks else None

    def _watch(self) -> None:
        """Look again when the wheel may change hands by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waits = [(place, self._changes_in_s(place)) for place in self._places]
        # A place that anybody may take waits for somebody who does.
        later = [wait for place, wait in waits if wait is not None and (wait > EARLY_S or place.away_since is None)]
        if later:
            self._timer = asyncio.get_running_loop().call_later(min(later), self._look_again)

    def _look_again(self) -> None:
        """Unless the holder has done something since."""
        self._timer = None
        waits = [(place, self._changes_in_s(place)) for place in self._places]
        due = [place for place, wait in waits if wait is not None and wait <= EARLY_S]
        for place in due:
            if self._first_asking is not None:
                self._give(place, self._first_asking)
        self._watch()
        if due:
            self.announce()
