"""All rooms of a server: joining opens a room with its session, leaving for good closes it.

The first join of a room asks the engine for a session; joins that arrive meanwhile wait for the same answer.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable

from av.video.frame import VideoFrame

from ...clock import Clock
from ...engine.api import Close, EngineClient, RefusalReason, Refused, SuspendableEngine
from ..audience import Audience, Sink
from ..counters import RoomsCounters, with_journal
from ..drivers import DriversRule
from ..journal.journal import Journal
from ..messages import Role, WorldState
from ..views import FirstFrame, RoomView
from .first_frames import UploadedMedia
from .log import WaitLog, stopped
from .names import ROOM_NAME_RULE, valid_room
from .opener import RoomEntry, RoomOpener, RoomsSpec
from .participant import Participant
from .past import PastRooms
from .recording import RoomRecordings
from .refusals import full, refusal
from .rights import OPEN, Rights
from .room import CloseReason, Room
from .suspend import RoomSuspension
from .unattended import Fleet
from .upload import FirstFrameUploads

log = logging.getLogger(__name__)

SETTLE_S = 0.15
"""From the last viewer's leaving until a chunk that was in flight is surely done."""

UNATTENDED_S = 4.0
"""A room without anybody for so long makes room for who waits in line; a reload is shorter."""


class Rooms:
    """The way into every room. `entropy(n)` makes n random bytes for names, tokens and seeds.

    `suspension`: takes rooms through a restart of the server; None = they end with it. `recordings`: films of them.
    `futures`: the engine, where worlds may go back and on in another future. `past`: rooms that go on from an earlier
    session, where there are any.
    """

    def __init__(
        self,
        door: EngineClient,
        journal: Journal,
        clock: Clock,
        spec: RoomsSpec,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
        suspension: RoomSuspension | None = None,
        recordings: RoomRecordings | None = None,
        futures: SuspendableEngine | None = None,
        past: PastRooms | None = None,
    ) -> None:
        self._door = door
        self._recordings = recordings
        self._suspension = suspension
        self._journal = journal
        self._clock = clock
        self._spec = spec
        self._entropy = entropy
        self._counters = RoomsCounters()
        self._opener = RoomOpener(door, journal, clock, spec, self._counters, entropy, suspension, futures, past)
        self._uploads = FirstFrameUploads(clock, self._counters)
        self._line = WaitLog()
        self._entries: dict[str, RoomEntry] = {}
        self._closing = False

    async def join(
        self,
        room: str,
        sink: Sink,
        token: str | None,
        want_role: Role | None,
        name: str | None = None,
        rights: Rights = OPEN,
        card: str | None = None,
        drivers: DriversRule | None = None,
    ) -> Participant | Refused:
        """Take a seat in a room. `token` from an earlier seat takes that one over; the first one in drives.

        `name`: to be known by, if there is a wish. `card`, `drivers`: the world of a room that is not open, and how
        several drive it; one that is open keeps its own. The sink gets `Welcome` first. A refusal reserves nothing.
        """
        drivers = rights.drivers or drivers
        refused = None if room in self._entries else self._opener.unsuitable(card, drivers)
        joined = refused or await self._join(room, sink, token, want_role, name, rights, card, drivers)
        self._counters.joins_refused += isinstance(joined, Refused)
        return joined

    async def first_frame(self, room: str, token: str, media: UploadedMedia, body: AsyncIterator[bytes]) -> FirstFrame:
        """Begin a room's world anew from a picture or the end of a video; raises `first_frames.BadFirstFrames`."""
        return await self._uploads.begin(self.open_room(room), token, media, body)

    async def live_first_frame(self, room: str, token: str, pictures: AsyncIterator[VideoFrame]) -> FirstFrame:
        """The same from the next pictures of a camera."""
        return await self._uploads.begin_live(self.open_room(room), token, pictures)

    def check_first_frame(self, room: str, token: str) -> None:
        """Raises `first_frames.BadFirstFrames` where a first frame would be refused at once."""
        self._uploads.check(self.open_room(room), token)

    def seat_token(self, room: str, identity: str) -> str | None:
        """Of the seat that identity has in that room."""
        found = self.open_room(room)
        seat = None if found is None else found.seats.of_identity(identity)
        return None if seat is None else seat.token

    def refuses(self, room: str, token: str | None, rights: Rights) -> Refused | None:
        """What can be said at once to who asks for a seat, before anything is done for them."""
        found, refused = self.open_room(room), self._refused_at_once(room)
        if refused is None and found is not None and not found.has_seat(token, rights):
            refused = full(found)
        self._counters.joins_refused += refused is not None
        return refused

    def has(self, room: str) -> bool:
        """Whether that room has an open world."""
        return self.open_room(room) is not None

    def rights(self, room: str, token: str) -> Rights | None:
        """Of who has a seat in that room under that token, connected or not."""
        found = self.open_room(room)
        seat = None if found is None else found.seats.of_token(token)
        return None if seat is None else seat.rights

    def open_room(self, name: str) -> Room | None:
        entry = self._entries.get(name)
        return None if entry is None else entry.room

    def open_rooms(self) -> list[Room]:
        return [entry.room for entry in self._entries.values() if entry.room is not None]

    def views(self) -> tuple[RoomView, ...]:
        """Rooms whose session is open, in order of opening."""
        return tuple(room.view() for room in self.open_rooms())

    def counters(self) -> RoomsCounters:
        """A copy of the totals, the journal's among them."""
        now = with_journal(self._counters, self._journal.counters())
        now.rooms, now.participants = len(self._entries), sum(len(entry.audience) for entry in self._entries.values())
        return now

    async def close(self) -> None:
        """Suspend every world, or end it; the journal is the caller's to close afterwards."""
        self._closing = True
        entries = list(self._entries.values())
        await asyncio.gather(*(entry.task for entry in entries), return_exceptions=True)
        if self._suspension is not None and entries:
            await asyncio.sleep(SETTLE_S)
        suspended, ended = [], 0
        for room in [entry.room for entry in entries if entry.room is not None]:
            if self._suspension is not None and await self._suspension.suspend(room):
                suspended.append(room.spec.name)
            else:
                ended += 1
                room.close(CloseReason.SHUTDOWN)
        log.info("%s", stopped(suspended, ended))
        self._entries.clear()

    # ---- joining --------------------------------------------------------------------------------------------------

    async def _join(
        self,
        name: str,
        sink: Sink,
        token: str | None,
        want_role: Role | None,
        wish: str | None,
        rights: Rights,
        card: str | None,
        drivers: DriversRule | None,
    ) -> Participant | Refused:
        refused = self._refused_at_once(name)
        if refused is not None:
            return refused
        entry = self._entries.get(name) or self._start(name, card, drivers or self._spec.drivers)
        entry.joining += 1
        try:
            # Shielded: the room is for all who wait, and one of them may go away.
            room = await asyncio.shield(entry.task)
        finally:
            entry.joining -= 1
            if entry.joining == 0:
                self._nobody_waits(entry)
        if isinstance(room, Refused):
            self._line.stands(name, room)
            if room.queue_place:
                await self._make_room(entry.card or self._spec.card)
            return room
        if room.session.state is WorldState.CLOSED:
            return refusal(RefusalReason.NOT_READY, "the world ended as it began", retry_after_s=1.0)
        seated = room.seat(sink, token, want_role, wish, rights)
        if seated is None:
            return full(room)
        return seated

    async def _make_room(self, card: str) -> None:
        """Somebody stands in line for that card: a world that nobody attends and that holds what is waited for is
        suspended, else it ends.
        """
        late = self._clock.now() - UNATTENDED_S
        empty = {room: at for room in self.open_rooms() if (at := room.empty_since) is not None and at <= late}
        rooms = {room.session.world: room for room in sorted(empty, key=empty.__getitem__)}
        if not rooms:
            return
        world = Fleet(self._door.capacity(), self._door.sessions()).gives_way(card, tuple(rooms))
        if world is None:
            return
        room = rooms[world]
        log.info("room %s is unattended and makes room for who waits", room.spec.name)
        self._forget(self._entries[room.spec.name])
        if self._suspension is None or not await self._suspension.suspend(room):
            room.close(CloseReason.UNATTENDED)
            room.end()
        if self._recordings is not None:
            self._recordings.ended(room)

    def _refused_at_once(self, name: str) -> Refused | None:
        if not valid_room(name):
            return refusal(RefusalReason.ROOM_NAME, ROOM_NAME_RULE, retry_after_s=0.0)
        if self._closing:
            return refusal(RefusalReason.NOT_READY, "the server is shutting down", retry_after_s=5.0)
        if name not in self._entries and len(self._entries) >= self._spec.rooms:
            detail = f"all {self._spec.rooms} rooms of this server are in use"
            return refusal(RefusalReason.NO_SLOT, detail, retry_after_s=5.0)
        return None

    def _nobody_waits(self, entry: RoomEntry) -> None:
        """All have their answer, or went away before there was one: then the room stops waiting for a place.

        One that is being restored goes on: its world would be lost.
        """
        if not entry.task.done() and entry.asked:
            self._door.post(Close(session=entry.asked))
            self._forget(entry)
            if self._line.gone(entry.name):
                log.info("room %s leaves the line: nobody waits for it", entry.name)
        entry.task.add_done_callback(lambda _: self._close_if_deserted(entry))

    def _close_if_deserted(self, entry: RoomEntry) -> None:
        """Everyone who waited for this room went away before it was open."""
        if entry.joining == 0 and entry.room is not None:
            entry.room.close_if_empty()

    # ---- opening and closing --------------------------------------------------------------------------------------

    def _start(self, name: str, card: str | None, drivers: DriversRule) -> RoomEntry:
        audience, session = Audience(self._ended), self._entropy(8).hex()
        seed = int.from_bytes(self._entropy(6), "little")
        task = asyncio.get_running_loop().create_task(self._open(name, seed), name=f"open {name}")
        entry = self._entries[name] = RoomEntry(name, card, drivers, audience, session, task)
        return entry

    async def _open(self, name: str, seed: int) -> Room | Refused:
        entry = self._entries[name]
        opened: Room | Refused | None = None
        try:
            opened = await self._opener.open(entry, seed)
        finally:
            if not isinstance(opened, Room):
                self._forget(entry)
        if isinstance(opened, Room):
            entry.room = opened
            self._line.gone(name)
            if self._recordings is not None:
                self._recordings.opened(opened, entry.audience)
            if self._suspension is not None:
                self._suspension.opened()
            spec = opened.session.spec
            log.info("room %s opens: card %s, session %s", name, spec.card, spec.name)
        return opened

    def _ended(self, audience: Audience, reason: str) -> None:
        """The world of this audience has ended: its room's name is free."""
        for entry in [entry for entry in self._entries.values() if entry.audience is audience]:
            if entry.room is not None:
                entry.room.end()
                if self._recordings is not None:
                    self._recordings.ended(entry.room)
            self._forget(entry)
            log.info("room %s closes: %s", entry.name, reason)

    def _forget(self, entry: RoomEntry) -> None:
        entry.forgotten = True
        if self._entries.get(entry.name) is entry:
            del self._entries[entry.name]
