"""All rooms of a server: joining opens a room with its session, leaving for good closes it.

The first join of a room asks the engine for a place; joins that arrive meanwhile wait for the same answer.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from ...clock import Clock
from ...engine.api import Close, EngineClient, LatencyClass, RefusalReason, Refused
from ..audience import Sink
from ..counters import RoomsCounters
from ..journal.journal import Journal
from ..messages import FirstFrame, Role, RoomView, WorldState
from ..session.session import Session
from ..session.spec import SessionSpec
from .first_frames import UploadedMedia
from .log import WaitLog, stopped
from .participant import Limits, Participant
from .room import CloseReason, Room, RoomSpec
from .suspend import RoomSuspension
from .upload import FirstFrameUploads

log = logging.getLogger(__name__)

SETTLE_S = 0.15
"""From the last viewer's leaving until a chunk that was in flight is surely done."""
_ROOM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class RoomsSpec:
    """What a server's rooms are like. `prompt` None = the card's first suggestion; `steps` None = the recipe's."""

    card: str
    prompt: str | None = None
    steps: int | None = None
    latency_class: LatencyClass = LatencyClass.INTERACTIVE
    lease_s: float = 60.0
    rooms: int = 64
    places: int = 32
    limits: Limits = field(default_factory=Limits)


@dataclass(slots=True)
class _Opening:
    """A room, the task that opens its session, and how many joins wait for it."""

    room: Room
    task: "asyncio.Task[Refused | None]"
    waiting: int = 0
    returning: bool = False
    """It is being brought back: it goes on even if everyone who waited went away."""


class Rooms:
    """The way into every room. `entropy(n)` makes n random bytes for names, tokens and seeds.

    `returning`: brings rooms through a restart of the server; None = they end with it.
    """

    def __init__(
        self,
        door: EngineClient,
        journal: Journal,
        clock: Clock,
        spec: RoomsSpec,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
        returning: RoomSuspension | None = None,
    ) -> None:
        self._door = door
        self._returning = returning
        self._journal = journal
        self._clock = clock
        self._spec = spec
        self._entropy = entropy
        self._counters = RoomsCounters()
        self._uploads = FirstFrameUploads(self._counters)
        self._line = WaitLog()
        self._open: dict[str, _Opening] = {}
        self._closing = False

    async def join(
        self, room: str, sink: Sink, token: str | None, want_role: Role | None, name: str | None = None
    ) -> Participant | Refused:
        """Take a place in a room. `token` from an earlier place takes that one over; the first one in drives.

        `name`: to be known by, if there is a wish. The sink gets `Welcome` first. A refusal reserves nothing.
        """
        refusal = self._refusal_at_the_door(room)
        if refusal is not None:
            self._counters.joins_refused += 1
            return refusal
        opening = self._open.get(room) or self._start(room)
        opening.waiting += 1
        try:
            refused = await asyncio.shield(opening.task)
        finally:
            opening.waiting -= 1
            if opening.waiting == 0:
                self._nobody_waits(opening)
        if refused is not None:
            self._counters.joins_refused += 1
            self._line.stands(room, refused)
            return refused
        if opening.room.session.state is WorldState.CLOSED:
            self._counters.joins_refused += 1
            return self._refuse(RefusalReason.NOT_READY, "the world ended as it began", retry_after_s=1.0)
        seated = opening.room.seat(sink, token, want_role, name)
        if seated is None:
            self._counters.joins_refused += 1
            taken = opening.room.spec.places
            detail = f"all {taken} places of this room are taken"
            return self._refuse(RefusalReason.ROOM_FULL, detail, retry_after_s=5.0)
        return seated

    async def first_frame(self, room: str, token: str, media: UploadedMedia, body: AsyncIterator[bytes]) -> FirstFrame:
        """Begin a room's world anew from a picture or the end of a video; raises `opening.BadOpening`."""
        opening = self._open.get(room)
        return await self._uploads.begin(None if opening is None else opening.room, token, media, body)

    def views(self) -> tuple[RoomView, ...]:
        """Rooms whose session is open, in order of opening."""
        return tuple(_view(entry.room) for entry in self._open.values() if entry.room.session.card is not None)

    def counters(self) -> RoomsCounters:
        """A copy of the totals, the journal's among them."""
        journal = self._journal.counters()
        return replace(
            self._counters,
            rooms=len(self._open),
            journal_recorded=journal.recorded,
            journal_written=journal.written,
            journal_repeated=journal.repeated,
            journal_spooled=journal.spooled,
            journal_dropped=journal.dropped,
            journal_outages=journal.outages,
            journal_disk_errors=journal.disk_errors,
            journal_buffered=journal.buffered,
            journal_spool_bytes=journal.spool_bytes,
            journal_away=int(journal.away),
        )

    async def close(self) -> None:
        """Put every world aside, or end it; the journal is the caller's to close afterwards."""
        self._closing = True
        openings = list(self._open.values())
        await asyncio.gather(*(opening.task for opening in openings), return_exceptions=True)
        if self._returning is not None and openings:
            await asyncio.sleep(SETTLE_S)
        aside, ended = [], 0
        for opening in openings:
            if self._returning is not None and await self._returning.keep(opening.room):
                aside.append(opening.room.spec.name)
            else:
                ended += opening.room.session.card is not None
                opening.room.close(CloseReason.SHUTDOWN)
        log.info("%s", stopped(aside, ended))
        self._open.clear()

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _refusal_at_the_door(self, room: str) -> Refused | None:
        if _ROOM_NAME.fullmatch(room) is None:
            detail = "a room's name has 1 to 64 letters, digits, '-' or '_' and starts with a letter or digit"
            return self._refuse(RefusalReason.ROOM_NAME, detail, retry_after_s=0.0)
        if self._closing:
            return self._refuse(RefusalReason.NOT_READY, "the server is shutting down", retry_after_s=5.0)
        if room not in self._open and len(self._open) >= self._spec.rooms:
            detail = f"all {self._spec.rooms} rooms of this server are in use"
            return self._refuse(RefusalReason.NO_SLOT, detail, retry_after_s=5.0)
        return None

    def _start(self, name: str) -> _Opening:
        spec = self._spec
        room_spec = RoomSpec(name=name, lease_s=spec.lease_s, places=spec.places, limits=spec.limits)
        room = Room(room_spec, self._clock, self._counters, self._entropy, self._forget)
        room.furnish(self._session(room, self._entropy(8).hex(), room.fresh_seed()))
        opening = _Opening(room, asyncio.get_running_loop().create_task(self._open_session(room), name=f"open {name}"))
        self._open[name] = opening
        return opening

    def _session(self, room: Room, name: str, seed: int) -> Session:
        spec = self._spec
        session_spec = SessionSpec(
            name=name,
            room=room.spec.name,
            card=spec.card,
            seed=seed,
            prompt=spec.prompt,
            steps=spec.steps,
            latency_class=spec.latency_class,
        )
        return Session(session_spec, self._door, self._journal, self._clock, self._counters, room)

    async def _old_or_new(self, room: Room) -> Refused | None:
        """The room's world of before if it was put aside, else a new one."""
        name, returning = room.spec.name, self._returning
        aside = await returning.find(name, self._spec.card) if returning is not None else None
        if returning is not None and aside is not None and (opening := self._open.get(name)) is not None:
            opening.returning = True
            old = self._session(room, aside.record.session.name, aside.record.session.seed)
            back = await returning.bring_back(room, old, aside)
            opening.returning = False
            if back is not False:
                return back if isinstance(back, Refused) else None
        return await room.session.open()

    async def _open_session(self, room: Room) -> Refused | None:
        opened = False
        try:
            refused = await self._old_or_new(room)
            opened = refused is None
            if opened:
                self._line.gone(room.spec.name)
                session = room.session.spec
                log.info("room %s opens: card %s, session %s", room.spec.name, session.card, session.name)
            return refused
        finally:
            if not opened:
                self._forget(room)

    def _forget(self, room: Room) -> None:
        """The room is closed: its name is free."""
        opening = self._open.get(room.spec.name)
        if opening is not None and opening.room is room:
            del self._open[room.spec.name]

    def _nobody_waits(self, opening: _Opening) -> None:
        """All have their answer, or went away before there was one: then the room stops waiting for a place."""
        if not opening.task.done() and not opening.returning:
            self._door.post(Close(session=opening.room.session.spec.name))
            self._forget(opening.room)
            if self._line.gone(opening.room.spec.name):
                log.info("room %s leaves the line: nobody waits for it", opening.room.spec.name)
        opening.task.add_done_callback(lambda _: self._close_if_deserted(opening))

    def _close_if_deserted(self, opening: _Opening) -> None:
        """Everyone who waited for this room went away before it was open."""
        if opening.waiting == 0 and not opening.task.cancelled() and opening.task.exception() is None:
            opening.room.close_if_empty()

    @staticmethod
    def _refuse(reason: RefusalReason, detail: str, retry_after_s: float) -> Refused:
        return Refused(session="", reason=reason, detail=detail, queue_place=0, retry_after_s=retry_after_s)


def _view(room: Room) -> RoomView:
    session = room.session
    return RoomView(
        room=room.spec.name,
        session=session.spec.name,
        card=session.spec.card,
        state=session.state,
        viewers=room.connected,
        driver=room.driver is not None,
        epoch=session.epoch,
        chunk=session.next_chunk,
    )
