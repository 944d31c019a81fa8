"""Where people meet around one session: places, the wheel, and everything that goes to all of them.

A place is a participant's for as long as the lease lasts after its last connection; its token takes it over, wheel
included. A driver who leaves on purpose leaves the wheel, a lost one keeps it for seconds (`wheel.py`). Nobody
connected: the world is held. All places gone: the room closes.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from ...clock import Clock
from ...engine.api import Frame
from ..audience import Sink
from ..counters import RoomsCounters
from ..journal import events
from ..messages import (
    ControlView,
    FirstFrameView,
    Participants,
    PassWheel,
    Problem,
    RefuseWheel,
    Role,
    ServerMessage,
    Welcome,
)
from ..session.session import Session
from .participant import Limits, Participant
from .seats import Seat, Seats
from .suspend_store import RoomRecord
from .wheel import Wheel, WheelSpec

log = logging.getLogger(__name__)


class CloseReason(StrEnum):
    LEASE = "lease"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True, slots=True)
class RoomSpec:
    """`places`: participants at most, the absent ones within their lease included."""

    name: str
    lease_s: float
    places: int
    limits: Limits
    wheel: WheelSpec = field(default_factory=WheelSpec)


class Room:
    """One session's audience. Every call returns at once."""

    def __init__(
        self,
        spec: RoomSpec,
        clock: Clock,
        counters: RoomsCounters,
        entropy: Callable[[int], bytes],
        on_closed: Callable[["Room"], None],
    ) -> None:
        self.spec = spec
        self._session: Session | None = None
        self._clock = clock
        self._counters = counters
        self._entropy = entropy
        self._on_closed = on_closed
        self._places = Seats()
        self._wheel = Wheel(
            spec.wheel, self._places, clock, self._wheel_moved, self._tell_participants, lambda: self.session.next_chunk
        )

    @property
    def session(self) -> Session:
        assert self._session is not None, "a room has its session from `furnish` on"
        return self._session

    @property
    def driver(self) -> str | None:
        """Who holds the wheel, here or away."""
        return self._wheel.holder

    @property
    def connected(self) -> int:
        return len(self._places.members())

    @property
    def spectators(self) -> int:
        """Connected participants without the wheel."""
        return sum(member.participant != self.driver for member in self._places.members())

    def furnish(self, session: Session) -> None:
        """Give the room its session."""
        self._session = session

    # ---- coming and going -----------------------------------------------------------------------------------------

    def seat(self, sink: Sink, token: str | None, want: Role | None, wish: str | None = None) -> Participant | None:
        """A connection takes a place: its own again by token, else a new one; None when the room is full.

        `wish`: the name to be known by.
        """
        place = None if token is None else self._places.of_token(token)
        resumed = place is not None
        if place is None:
            if len(self._places) >= self.spec.places and not self._make_way():
                return None
            place = self._places.new(self._entropy(4).hex(), self._entropy(16).hex(), wish)
        elif place.member is not None:
            self._counters.takeovers += 1
            place.member.detach(Problem(code="taken_over", detail="this place was taken over by a newer connection"))
            self._counters.participants -= 1
            place.member = None
        place.end_lease()
        self.session.welcome_back()
        member = Participant(place.participant, place.token, self, sink, self._clock, self._counters, self.spec.limits)
        place.member = member
        self._counters.participants += 1
        if self._wheel.takeable and want is not Role.SPECTATOR and not resumed:
            self._wheel.give(place.participant)
        elif self.driver == place.participant:
            self._wheel.back()
            self.session.steered_by(member.inbox)
        self.session.record(events.Joined(participant=place.participant, role=member.role, resumed=resumed))
        log.info(
            "room %s: a %s %s, %d in", self.spec.name, member.role, "is back" if resumed else "joins", self.connected
        )
        self._greet(member, resumed)
        return member

    def left(self, member: Participant) -> None:
        """A connection is gone. Its keys are released, its place and wheel are kept for the lease."""
        place = self._places.of(member.participant)
        if place is None or place.member is not member:
            return
        place.member = None
        self._counters.participants -= 1
        if self.driver == place.participant:
            self.session.steered_by(None)
        self._wheel.away(place.participant)
        self.session.record(events.Left(participant=place.participant, gone=False))
        log.info("room %s: a %s leaves, %d in", self.spec.name, member.role, self.connected)
        loop = asyncio.get_running_loop()
        place.lease = loop.call_later(self.spec.lease_s, self._lease_ended, place)
        self._tell_participants()
        if self.connected == 0:
            self.session.abandon()

    def left_for_good(self, member: Participant) -> None:
        """On purpose: the wheel is free at once, and the place too unless it is the last, by which the world waits."""
        place = self._places.of(member.participant)
        if place is None or place.member is not member:
            return
        self._wheel.let_go(place.participant)
        self.left(member)
        if len(self._places) > 1:
            self._give_up(place)
            self._tell_participants()
        member.detach(Problem(code="left", detail="you have left the room"))

    def close(self, reason: str) -> None:
        self.session.close(reason)

    def recorded(self) -> RoomRecord:
        """The room as `bring_back` takes it."""
        return RoomRecord(self.spec.name, self.driver, self._places.recorded(), self.session.recorded())

    def bring_back(self, record: RoomRecord) -> None:
        """Be the room that was put aside: everybody is away, and their leases begin now."""
        loop = asyncio.get_running_loop()
        self._wheel.restore(record.driver)
        for place in self._places.bring_back(record.places):
            place.lease = loop.call_later(self.spec.lease_s, self._lease_ended, place)

    def leave(self) -> None:
        """It was put aside; nobody is connected."""
        self._places.clear()
        self._wheel.stand_down()
        self.session.leave()

    def close_if_empty(self) -> None:
        """Close when nobody has a place: who opened the room went away meanwhile."""
        if not self._places:
            self.session.close(CloseReason.LEASE)

    # ---- the wheel ------------------------------------------------------------------------------------------------

    def member(self, token: str) -> Participant | None:
        """Who is connected under that token."""
        place = self._places.of_token(token)
        return None if place is None else place.member

    def holds_wheel(self, participant: str) -> bool:
        return self.driver == participant

    def pass_wheel(self, participant: str, message: PassWheel | RefuseWheel) -> Problem | None:
        """Move the wheel, ask for it or refuse it; the problem when that is not possible."""
        if isinstance(message, RefuseWheel):
            return self._wheel.refuse(participant, message)
        return self._wheel.pass_on(participant, message)

    def fresh_seed(self) -> int:
        return int.from_bytes(self._entropy(6), "little")

    # ---- the session's audience -----------------------------------------------------------------------------------

    def show(self, frame: Frame, hold_us: int) -> None:
        for member in self._places.members():
            member.show(frame, hold_us)

    def tell(self, message: ServerMessage) -> None:
        for member in self._places.members():
            member.send(message)

    def closed(self, reason: str) -> None:
        for member in self._places.members():
            member.detach(Problem(code="room_closed", detail=f"the world has ended: {reason}"))
            self._counters.participants -= 1
        self._places.clear()
        self._wheel.stand_down()
        log.info("room %s closes: %s", self.spec.name, reason)
        self._on_closed(self)

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _wheel_moved(self, before: str | None, after: str | None) -> None:
        self.session.record(events.DriverChanged(before=before, after=after))
        member = None if after is None else self._places.member(after)
        self.session.steered_by(None if member is None else member.inbox)

    def _lease_ended(self, place: Seat) -> None:
        self._give_up(place)
        if not self._places:
            self.session.close(CloseReason.LEASE)
        else:
            self._tell_participants()

    def _give_up(self, place: Seat) -> None:
        """The place is free from now on, and the wheel with it."""
        self._places.remove(place)
        self.session.record(events.Left(participant=place.participant, gone=True))
        self._wheel.let_go(place.participant)

    def _make_way(self) -> bool:
        """Free the place that an absent spectator has kept longest; False when there is none."""
        place = self._places.longest_absent(but=self.driver)
        if place is None:
            return False
        self._give_up(place)
        return True

    def _greet(self, member: Participant, resumed: bool) -> None:
        session, card = self.session, self.session.card
        assert card is not None, "a room has members only after its session is open"
        prompt = session.prompts.current
        member.send(
            Welcome(
                room=self.spec.name,
                session=session.spec.name,
                participant=member.participant,
                role=member.role,
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
                first_frame=None if card.opening is None else FirstFrameView(card.opening.width, card.opening.height),
                recache=card.recache,
                pointer=card.pointer,
                prompt_chars=card.prompt_chars,
                lease_s=self.spec.lease_s,
            )
        )
        if prompt is not None:
            member.send(prompt.changed())
        self._tell_participants()

    def _tell_participants(self) -> None:
        people, wheel = self._places.people(), self._wheel
        for member in self._places.members():
            member.send(Participants(wheel.holder, member.role, self.spectators, people, wheel.asking, wheel.free_in_s))
