"""The wheel of a room: who holds it, who asked for it, and when somebody else may take it.

    free -- take --> held -- holder away for `AWAY_S` --> anybody may take it; who asked first gets it
                     held -- asked, and the holder idle for `IDLE_S` --> who asked first gets it

Whoever holds it steers the session from the next chunk on; everybody is told of every change.
"""

import asyncio

from ...clock import Clock
from ..audience import Audience
from ..journal.events import DriverChanged
from ..messages import Accepted, Applied, Grant, Participants, PassWheel, Problem, RefuseWheel, Role
from ..session.session import Session
from .seats import Seats

AWAY_S = 8.0
"""So long a lost driver keeps the wheel."""
IDLE_S = 30.0
"""So long an idle driver keeps it from who asks."""


class Wheel:
    """See the module docstring. `holder`: a participant, who may be away; None = nobody."""

    def __init__(self, session: Session, seats: Seats, audience: Audience, clock: Clock) -> None:
        self._clock = clock
        self._session, self._seats, self._audience = session, seats, audience
        self.holder: str | None = None
        self._asks: dict[str, int] = {}
        self._away_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # ---- what a participant does ------------------------------------------------------------------------------------

    def pass_on(self, participant: str, message: PassWheel) -> Problem | None:
        """Hand the wheel over, let go of it, take a free one or ask for it; the problem when that is not possible."""
        if self.holder == participant:
            target = self._first_asking if message.to is None else message.to
            if target is not None and target not in self._audience:
                return Problem(code="unknown_participant", detail="nobody of that name is here", id=message.id)
            if target is not None and not self._may_drive(target):
                return Problem(code="may_not_drive", detail="their token lets them watch", id=message.id)
        elif message.to is not None:
            return Problem(code="not_driving", detail="only the driver hands over the wheel", id=message.id)
        elif not self._may_drive(participant):
            return Problem(code="may_not_drive", detail="your token lets you watch", id=message.id)
        elif self.takeable or self._outranks(participant):
            target = participant
        else:
            self._asks.setdefault(participant, message.id)
            self._audience.send(participant, Accepted(id=message.id))
            self._watch()
            self.announce()
            return None
        self._audience.send(participant, Accepted(id=message.id))
        self.give(target)
        self._audience.send(participant, Applied(id=message.id, chunk=self._session.next_chunk))
        self.announce()
        return None

    def refuse(self, participant: str, message: RefuseWheel) -> Problem | None:
        """Refuse who asked, or take the own question back; the problem when there is no such question."""
        if participant not in (self.holder, message.to):
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

    def give(self, participant: str | None) -> None:
        """From now on that participant holds it, None = nobody."""
        before, asked = self.holder, self._asks.pop(participant or "", None)
        self.holder, self._away_since = participant, None
        self._session.record(DriverChanged(before=before, after=participant))
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
        if self.holder == participant:
            self.give(self._first_asking)

    def away(self, participant: str) -> None:
        """That participant's connection is gone; a holder keeps the wheel for a while."""
        self._asks.pop(participant, None)
        if self.holder == participant:
            self._away_since = self._clock.now()
            self._steer()
            self._watch()

    def back(self) -> None:
        """The holder is connected again."""
        self._away_since = None
        self._steer()
        self._watch()

    def restore(self, holder: str | None) -> None:
        """As it was suspended: whoever holds it is away."""
        self.holder, self._away_since = holder, None if holder is None else self._clock.now()
        self._watch()

    def stand_down(self) -> None:
        """The room is over."""
        self.holder, self._away_since = None, None
        self._asks.clear()
        self._watch()

    # ---- how things stand -------------------------------------------------------------------------------------------

    def role(self, participant: str) -> Role:
        return Role.DRIVER if self.holder == participant else Role.SPECTATOR

    def announce(self) -> None:
        """Tell everybody who is here, who drives and who asks to."""
        people, asking, free_in_s = self._seats.people(), tuple(self._asks), self.free_in_s
        spectators = sum(person.participant != self.holder for person in people)
        for seat in self._seats.connected():
            you = self.role(seat.participant)
            told = Participants(self.holder, you, spectators, people, asking, free_in_s)
            self._audience.send(seat.participant, told)

    @property
    def free_in_s(self) -> float | None:
        """Seconds until anybody may take it from a holder who is away; None while there is none or it is here."""
        if self.holder is None or self._away_since is None:
            return None
        return max(0.0, self._away_since + AWAY_S - self._clock.now())

    @property
    def takeable(self) -> bool:
        return self.holder is None or self.free_in_s == 0.0

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _may_drive(self, participant: str) -> bool:
        seat = self._seats.of(participant)
        return seat is not None and seat.rights.grant.may_drive

    def _outranks(self, participant: str) -> bool:
        """A driver takes the wheel from a co-driver without asking."""
        own, driver = self._seats.of(participant), self._seats.of(self.holder)
        grants = None if own is None or driver is None else (own.rights.grant, driver.rights.grant)
        return grants == (Grant.DRIVER, Grant.CO_DRIVER)

    @property
    def _first_asking(self) -> str | None:
        return next(iter(self._asks), None)

    def _idle_in_s(self) -> float | None:
        """Seconds until a holder who is here counts as idle; None while nobody holds it or the holder is away."""
        seat = self._seats.of(self.holder)
        if seat is None or seat.participant not in self._audience:
            return None
        return max(0.0, seat.active_at + IDLE_S - self._clock.now())

    def _steer(self) -> None:
        """Let the holder's connection steer the session; without one every key is up."""
        seat = self._seats.of(self.holder)
        self._session.steered_by(seat.inbox if seat is not None and seat.participant in self._audience else None)

    def _watch(self) -> None:
        """Look again when the wheel may change hands by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wait_s = self._idle_in_s() if self._asks and self._away_since is None else self.free_in_s or None
        if wait_s is not None:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        if self._away_since is None and self._idle_in_s():
            self._watch()  # the holder has done something since
            return
        first = self._first_asking
        if first is not None:
            self.give(first)
        self.announce()
