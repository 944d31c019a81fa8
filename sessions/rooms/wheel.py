"""The wheel of a room: who holds it, who asked for it, and when somebody else may take it.

    free -- take --> held -- holder away for `away_s` --> anybody may take it; who asked first gets it
                     held -- asked, and the holder idle for `idle_s` --> who asked first gets it

Knows seats and who is connected at them; knows no session: `moved` hears who held it and who holds it now, `changed`
that everybody should be told how things stand.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ...clock import Clock
from ..messages import Accepted, Applied, PassWheel, Problem, RefuseWheel
from .seats import Seats


@dataclass(frozen=True, slots=True)
class WheelSpec:
    """`away_s`: so long a lost driver keeps the wheel; `idle_s`: so long an idle one keeps it from who asks."""

    away_s: float = 8.0
    idle_s: float = 30.0


class Wheel:
    """See the module docstring. `next_chunk`: the chunk at which a change takes effect."""

    def __init__(
        self,
        spec: WheelSpec,
        seats: Seats,
        clock: Clock,
        moved: Callable[[str | None, str | None], None],
        changed: Callable[[], None],
        next_chunk: Callable[[], int],
    ) -> None:
        self._spec, self._seats, self._clock = spec, seats, clock
        self._moved, self._changed, self._next_chunk = moved, changed, next_chunk
        self.holder: str | None = None
        self._asks: dict[str, int] = {}
        self._away_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # ---- what a participant does ------------------------------------------------------------------------------------

    def pass_on(self, participant: str, message: PassWheel) -> Problem | None:
        """Hand the wheel over, let go of it, take a free one or ask for it; the problem when that is not possible."""
        if self.holder == participant:
            target = self._first_asking if message.to is None else message.to
            if target is not None and self._seats.member(target) is None:
                return Problem(code="unknown_participant", detail="nobody of that name is here", id=message.id)
        elif message.to is not None:
            return Problem(code="not_driving", detail="only the driver hands over the wheel", id=message.id)
        elif self.takeable:
            target = participant
        else:
            self._asks.setdefault(participant, message.id)
            self._tell(participant, Accepted(id=message.id))
            self._watch()
            self._changed()
            return None
        self._tell(participant, Accepted(id=message.id))
        self.give(target)
        self._tell(participant, Applied(id=message.id, chunk=self._next_chunk()))
        self._changed()
        return None

    def refuse(self, participant: str, message: RefuseWheel) -> Problem | None:
        """Refuse who asked, or take the own question back; the problem when there is no such question."""
        if participant not in (self.holder, message.to):
            return Problem(code="not_driving", detail="only the driver refuses the wheel", id=message.id)
        asked = self._asks.pop(message.to, None)
        if asked is None:
            return Problem(code="not_asking", detail="that participant does not ask for the wheel", id=message.id)
        self._tell(participant, Accepted(id=message.id))
        if participant != message.to:
            self._tell(message.to, Problem(code="wheel_refused", detail="the driver keeps the wheel", id=asked))
        self._changed()
        return None

    # ---- what happens to participants -------------------------------------------------------------------------------

    def give(self, participant: str | None) -> None:
        """From now on that participant holds it, None = nobody."""
        before, asked = self.holder, self._asks.pop(participant or "", None)
        self.holder, self._away_since = participant, None
        self._moved(before, participant)
        member = None if participant is None else self._seats.member(participant)
        if member is not None:
            member.steered_at = self._clock.now()
            if asked is not None:
                member.send(Applied(id=asked, chunk=self._next_chunk()))
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
            self._watch()

    def back(self) -> None:
        """The holder is connected again."""
        self._away_since = None
        self._watch()

    def restore(self, holder: str | None) -> None:
        """As it was put aside: whoever holds it is away."""
        self.holder, self._away_since = holder, None if holder is None else self._clock.now()
        self._watch()

    def stand_down(self) -> None:
        """The room is over."""
        self.holder, self._away_since = None, None
        self._asks.clear()
        self._watch()

    # ---- how things stand -------------------------------------------------------------------------------------------

    @property
    def asking(self) -> tuple[str, ...]:
        return tuple(self._asks)

    @property
    def free_in_s(self) -> float | None:
        """Seconds until anybody may take it from a holder who is away; None while there is none or it is here."""
        if self.holder is None or self._away_since is None:
            return None
        return max(0.0, self._away_since + self._spec.away_s - self._clock.now())

    @property
    def takeable(self) -> bool:
        return self.holder is None or self.free_in_s == 0.0

    # ---- inside -----------------------------------------------------------------------------------------------------

    @property
    def _first_asking(self) -> str | None:
        return next(iter(self._asks), None)

    def _idle_in_s(self) -> float | None:
        """Seconds until a holder who is here counts as idle; None while nobody holds it or the holder is away."""
        member = None if self.holder is None else self._seats.member(self.holder)
        if member is None:
            return None
        return max(0.0, member.steered_at + self._spec.idle_s - self._clock.now())

    def _watch(self) -> None:
        """Look again when the wheel may change hands by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._idle_in_s() if self._asks and self._away_since is None else self.free_in_s or None
        if due is not None:
            self._timer = asyncio.get_running_loop().call_later(due, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._away_since is None and self._idle_in_s():
            self._watch()  # the holder has done something since
            return
        first = self._first_asking
        if first is not None:
            self.give(first)
        self._changed()

    def _tell(self, participant: str, message: Accepted | Applied | Problem) -> None:
        member = self._seats.member(participant)
        if member is not None:
            member.send(message)
