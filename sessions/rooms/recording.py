"""Recording of rooms: who may start and stop it, and what the journal and the room's name have to do with it."""

import asyncio
import logging

from ..audience import Audience
from ..journal import events
from ..messages import Role, WorldState
from ..recording.moments import Moments
from ..recording.recordings import Recordings
from ..views import RecordingView
from .rights import REPLAY
from .room import Room

log = logging.getLogger(__name__)


class RecordingRefused(ValueError):
    """`code` for programs, the message for people."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class RoomRecordings:
    """`every`: rooms are recorded from their beginning, without being asked."""

    def __init__(self, recordings: Recordings, every: bool) -> None:
        self._recordings, self._every = recordings, every
        self._open: dict[str, tuple[Room, Audience]] = {}
        self._moments: dict[str, Moments] = {}

    def opened(self, room: Room, audience: Audience) -> None:
        """A room has its session."""
        self._open[room.spec.name] = room, audience
        session = room.session
        assert session.card is not None, "a room has an open session"
        moments = Moments(session.card.fps, lambda: session.request_key(joined=False))
        self._moments[room.spec.name] = moments
        audience.observe(moments.frame)
        if self._every and not session.spec.replays:
            try:
                self._start(room, audience)
            except OSError as error:
                log.error("room %s is not recorded: %s", room.spec.name, error)

    def ended(self, room: Room) -> None:
        self._open.pop(room.spec.name, None)
        self._moments.pop(room.spec.name, None)
        self._recordings.stop(room.session.spec.name)

    def start(self, name: str, token: str) -> RecordingView:
        """For the driver of that room; raises `RecordingRefused`."""
        room, audience = self._driven(name, token)
        if room.session.spec.replays:
            raise RecordingRefused(REPLAY, "this is a replay: its session may have films, it gets none")
        try:
            return RecordingView(room.session.spec.name, self._start(room, audience), True)
        except OSError as error:
            raise RecordingRefused("disk", f"the film cannot be written: {error.strerror}") from None

    def stop(self, room_name: str, token: str) -> RecordingView:
        """Raises `RecordingRefused`."""
        room, _ = self._driven(room_name, token)
        session = room.session.spec.name
        name = self._recordings.running(session)
        if name is None:
            raise RecordingRefused("not_recorded", "this room is not being recorded")
        self._recordings.stop(session)
        room.session.record(events.RecordingMarked(name=name, running=False))
        return RecordingView(session, name, False)

    async def clip(self, name: str, token: str) -> bytes:
        """The last half minute as an MP4, for who is in that room; raises `RecordingRefused`."""
        room, _ = self._open.get(name, (None, None))
        if room is None:
            raise RecordingRefused("no_room", "no world is open in this room")
        if room.connected_seat(token) is None:
            raise RecordingRefused("no_place", "this token has no connected seat in the room")
        moments = self._moments[name]
        frames = moments.taken()
        if not frames:
            raise RecordingRefused("not_recorded", "there is no film yet: it begins with the next key frame")
        try:
            return await asyncio.to_thread(moments.film, frames)
        except OSError as error:
            raise RecordingRefused("disk", f"the film cannot be written: {error.strerror}") from None

    def _start(self, room: Room, audience: Audience) -> str:
        session = room.session
        assert session.card is not None, "a room has an open session"
        running = self._recordings.running(session.spec.name)
        if running is not None:
            return running
        name = self._recordings.start(
            audience,
            session.spec.name,
            room.spec.name,
            session.card.name,
            session.card.fps,
            lambda: session.request_key(joined=True),
        )
        session.record(events.RecordingMarked(name=name, running=True))
        return name

    def _driven(self, name: str, token: str) -> tuple[Room, Audience]:
        room, audience = self._open.get(name, (None, None))
        if room is None or audience is None or room.session.state is WorldState.CLOSED:
            raise RecordingRefused("no_room", "no world is open in this room")
        seat = room.connected_seat(token)
        if seat is None:
            raise RecordingRefused("no_place", "this token has no connected seat in the room")
        if room.wheel.role(seat.participant) is not Role.DRIVER:
            raise RecordingRefused("not_driving", "only the driver starts and stops recordings")
        return room, audience
