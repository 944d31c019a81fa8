"""Where people meet around one session: seats, the wheel, and who comes and goes.

A seat is a participant's for as long as the lease lasts after its last connection; its token takes it over, wheel
included. A driver who leaves on purpose leaves the wheel, a lost one keeps it for seconds (`wheel.py`). Nobody
connected: the world is held. All seats gone: the room closes.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...clock import Clock
from ..audience import TAKEN_OVER, Audience, Sink
from ..counters import RoomsCounters
from ..drivers import PlaceSpec
from ..journal import events
from ..messages import ControlView, FirstFrameView, Grant, Problem, Role, Welcome
from ..session.session import Session
from ..views import RoomView
from .participant import Participant
from .rights import OPEN, Rights
from .room_record import RoomRecord
from .seats import Seat, Seats
from .wheel import Wheel

log = logging.getLogger(__name__)


class CloseReason(StrEnum):
    LEASE = "lease"
    UNATTENDED = "unattended"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True, slots=True)
class RoomSpec:
    """`seats`: participants at most, the absent ones within their lease included."""

    name: str
    lease_s: float
    seats: int


class Room:
    """One open session and its audience. `entropy(n)` makes n random bytes for names and tokens.

    `places`: at the wheel. `record`: that of a suspended room, to go on from it. Everybody is away then, and their
    leases begin now.
    """

    def __init__(
        self,
        spec: RoomSpec,
        session: Session,
        audience: Audience,
        clock: Clock,
        counters: RoomsCounters,
        entropy: Callable[[int], bytes],
        places: Sequence[PlaceSpec],
        record: RoomRecord | None = None,
    ) -> None:
        self.spec = spec
        self.session = session
        self.seats = Seats(audience)
        self.wheel = Wheel(session, self.seats, audience, clock, places)
        self._audience = audience
        self._clock = clock
        self._counters = counters
        self._entropy = entropy
        self.empty_since: float | None = None if record is None else clock.now()
        """When the last one went; None while somebody is connected or nobody has been yet."""
        if record is not None:
            self.seats.restore(record.seats, session.new_inbox)
            self.wheel.restore(record.holders)
            for seat in self.seats:
                self._start_lease(seat)

    @property
    def connected(self) -> int:
        return len(self._audience)

    def view(self) -> RoomView:
        """As lists show it."""
        session = self.session
        return RoomView(
            room=self.spec.name,
            session=session.spec.name,
            card=session.spec.card,
            state=session.state,
            viewers=self.connected,
            driver=bool(self.wheel.holders),
            drivers=str(session.spec.drivers),
            places_free=self.wheel.free,
            epoch=session.epoch,
            chunk=session.next_chunk,
        )

    def record(self, shown: bool = True) -> RoomRecord:
        """`shown` as in `Session.suspended`."""
        session = self.session
        people = str(session.spec.drivers), self.wheel.record(), self.seats.record()
        return RoomRecord(self.spec.name, *people, session.suspended(shown))

    # ---- coming and going -----------------------------------------------------------------------------------------

    def seat(
        self, sink: Sink, token: str | None, want: Role | None, wish: str | None = None, rights: Rights = OPEN
    ) -> Participant | None:
        """A connection takes a seat: its own again by token or identity, else a new one; None when the room is full.

        `wish`: the name to be known by.
        """
        seat = self._own_seat(token, rights)
        resumed = seat is not None
        if seat is None:
            if len(self.seats) >= self.spec.seats and not self._make_way():
                return None
            names = self._entropy(4).hex(), self._entropy(16).hex()
            seat = self.seats.add(*names, wish, rights, self.session.new_inbox())
        else:
            self._take_over(seat, rights)
        self.empty_since = None
        self.session.end_hold()  # before the newcomer is connected: its first message is `Welcome`
        self._audience.connect(seat.participant, sink)
        comes_to_drive = seat.rights.grant is Grant.DRIVER and want is not Role.SPECTATOR
        if resumed:
            self.wheel.back(seat.participant)
        elif comes_to_drive:
            self.wheel.welcome(seat.participant)
        role = self.wheel.role(seat.participant)
        self.session.record(events.Joined(seat.participant, role, resumed, rights.consent))
        log.info("room %s: a %s %s, %d in", self.spec.name, role, "is back" if resumed else "joins", self.connected)
        self._greet(seat, resumed)
        return Participant(
            seat,
            sink,
            self.session,
            self.wheel,
            self._audience,
            self._clock,
            self._counters,
            self._left,
        )

    def has_seat(self, token: str | None, rights: Rights) -> bool:
        """Whether `seat` would find one."""
        free = len(self.seats) < self.spec.seats or self.seats.longest_absent(but=self.wheel.holders) is not None
        return free or self._own_seat(token, rights) is not None

    def connected_seat(self, token: str) -> Seat | None:
        """The seat of that token, if its participant is connected."""
        seat = self.seats.of_token(token)
        return seat if seat is not None and seat.participant in self._audience else None

    def close(self, reason: str) -> None:
        self.session.close(reason)

    def close_if_empty(self) -> None:
        """Close when nobody has a seat: who opened the room went away meanwhile."""
        if not len(self.seats):
            self.session.close(CloseReason.LEASE)

    def let_go(self) -> None:
        """It was suspended while nobody was connected: it goes on as another object, perhaps in another server."""
        self.end()
        self.session.let_go()

    def end(self) -> None:
        """The session is over, or goes on elsewhere: no seat and no wheel any more."""
        self.seats.clear()
        self.wheel.stand_down()

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _own_seat(self, token: str | None, rights: Rights) -> Seat | None:
        """That of the token, unless it is another identity's; else the identity's."""
        seat = None if token is None else self.seats.of_token(token)
        if rights.identity is None or (seat is not None and seat.rights.identity == rights.identity):
            return seat
        return self.seats.of_identity(rights.identity)

    def _take_over(self, seat: Seat, rights: Rights) -> None:
        """A newer connection, with a fresh inbox and what its token says now: the older one is told and ends."""
        if rights.identity is not None:
            seat.rights = rights
        if not seat.rights.grant.may_drive:
            self.wheel.let_go(seat.participant)
        seat.end_lease()
        if seat.participant in self._audience:
            self._counters.takeovers += 1
            last = Problem(code=TAKEN_OVER, detail="this seat was taken over by a newer connection")
            self._audience.send(seat.participant, last)
            self._audience.disconnect(seat.participant)
        seat.inbox = self.session.new_inbox()

    def _left(self, seat: Seat, for_good: bool) -> None:
        """A connection is gone. Its keys are released, its seat is kept for the lease.

        `for_good`: on purpose. Then the wheel is free at once, and the seat too unless it is the last, by which the
        world waits.
        """
        if for_good:
            self.wheel.let_go(seat.participant)
        role = self.wheel.role(seat.participant)
        self.wheel.away(seat.participant)
        self.session.record(events.Left(participant=seat.participant, gone=False))
        log.info("room %s: a %s leaves, %d in", self.spec.name, role, self.connected)
        self._start_lease(seat)
        if for_good and len(self.seats) > 1:
            self._give_up(seat)
        self.wheel.announce()
        if self.connected == 0:
            self.empty_since = self._clock.now()
            self.session.hold()

    def _start_lease(self, seat: Seat) -> None:
        seat.lease = asyncio.get_running_loop().call_later(self.spec.lease_s, self._lease_ended, seat)

    def _lease_ended(self, seat: Seat) -> None:
        self._give_up(seat)
        self.close_if_empty()
        self.wheel.announce()

    def _give_up(self, seat: Seat) -> None:
        """The seat is free from now on, and the wheel with it."""
        self.seats.remove(seat)
        self.session.record(events.Left(participant=seat.participant, gone=True))
        self.wheel.let_go(seat.participant)

    def _make_way(self) -> bool:
        """Free the seat that an absent spectator has kept longest; False when there is none."""
        seat = self.seats.longest_absent(but=self.wheel.holders)
        if seat is None:
            return False
        self._give_up(seat)
        return True

    def _greet(self, seat: Seat, resumed: bool) -> None:
        session, card = self.session, self.session.card
        assert card is not None, "a room is made around an open session"
        prompt, size = session.prompts.current, card.first_frames
        self._audience.send(
            seat.participant,
            Welcome(
                room=self.spec.name,
                session=session.spec.name,
                participant=seat.participant,
                role=self.wheel.role(seat.participant),
                card=card.name,
                title=card.title,
                width=card.width,
                height=card.height,
                fps=card.fps,
                controls=tuple(ControlView(control.name, control.keys, control.analog) for control in card.controls),
                suggestions=card.suggestions,
                prompt=prompt.text if prompt is not None else "",
                state=session.state,
                epoch=session.epoch,
                chunk=session.next_chunk,
                resumed=resumed,
                first_frame=None if size is None else FirstFrameView(size.width, size.height),
                recache=card.recache,
                pointer=card.pointer,
                prompt_chars=card.prompt_chars,
                players=card.players,
                drivers=str(session.spec.drivers),
                lease_s=self.spec.lease_s,
                adapters=card.adapters,
                stack=session.adapters.now.stack,
                prompts_max=card.prompts_max,
                replay=session.spec.replays,
                replay_chunks=session.spec.replay_chunks,
                counterfactual=session.spec.counterfactual,
            ),
        )
        if prompt is not None:
            self._audience.send(seat.participant, prompt.changed())
        if (planned := session.prompts.planned()).prompts:
            self._audience.send(seat.participant, planned)
        if session.turns.beside.choice:
            self._audience.send(seat.participant, session.turns.beside.told())
        self.wheel.announce()
