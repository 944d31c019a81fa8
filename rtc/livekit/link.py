"""One connection to a room of a LiveKit server, by LiveKit's own SDK; with `video.py` the only file that imports it.

The SDK calls back on the event loop. Nothing here knows a world: people come and go, say something on a topic, and are
told something; what is to be sent waits in a bounded queue, because the SDK answers each packet before the next.
"""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from livekit import rtc

from ...sessions.rooms.rights import Rights
from .spec import LiveKitCounts, Topic, rights_of
from .video import VideoTrack, video_track

log = logging.getLogger(__name__)

WAITING_MAX = 512
CONNECT_TIMEOUT_S = 10.0
PEOPLE = (rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD, rtc.ParticipantKind.PARTICIPANT_KIND_AGENT)


class LinkLost(ConnectionError):
    """The LiveKit server did not let this server in, or cannot be reached."""


class LinkEvents(Protocol):
    """What a room is told by its link."""

    def came(self, rights: Rights) -> None:
        """Somebody is there, or may do something else from now on."""
        ...

    def went(self, identity: str, on_purpose: bool) -> None: ...

    def said(self, identity: str, topic: Topic, data: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """`to` () = everybody."""

    topic: Topic
    text: str
    to: tuple[str, ...]


class LiveKitLink:
    """See the module docstring. `over` is set when the SDK has given up on the connection."""

    def __init__(self, events: LinkEvents, counts: LiveKitCounts) -> None:
        self._counts = counts
        self._events = events
        self._room = rtc.Room()
        self._waiting: deque[Outgoing] = deque()
        self._more, self._sent = asyncio.Event(), asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self.over = asyncio.Event()
        self._room.on("participant_connected", self._came)
        self._room.on("participant_active", self._came)
        self._room.on("participant_disconnected", self._went)
        self._room.on("participant_permissions_changed", lambda person, *_: self._came(person))
        self._room.on("data_received", self._said)
        self._room.on("disconnected", lambda *_: self.over.set())

    async def connect(self, url: str, token: str) -> None:
        """Join; tells of everybody who is there already. Raises `LinkLost`."""
        options = rtc.RoomOptions(auto_subscribe=False, single_peer_connection=False)
        try:
            await asyncio.wait_for(self._room.connect(url, token, options), CONNECT_TIMEOUT_S)
        except (rtc.ConnectError, TimeoutError) as error:
            raise LinkLost(getattr(error, "message", "") or "no answer") from None
        self._sending = asyncio.create_task(self._send_all(), name="livekit-send")
        for person in self._room.remote_participants.values():
            self._came(person)

    async def publish(self, width: int, height: int) -> VideoTrack:
        """Publish the world's video; raises `LinkLost`."""
        track = video_track(width, height)
        try:
            await self._room.local_participant.publish_track(track.local, track.options)
        except rtc.participant.PublishTrackError as error:
            raise LinkLost(error.message) from None
        return track

    def send(self, message: Outgoing) -> None:
        """Never blocks. What is too much is dropped and counted, receipts before anything else."""
        if len(self._waiting) >= WAITING_MAX or (
            message.topic is Topic.RECEIPTS and len(self._waiting) >= WAITING_MAX // 8
        ):
            self._counts.dropped += 1
            return
        self._waiting.append(message)
        self._more.set()
        self._sent.clear()

    async def flush(self, seconds: float) -> None:
        """Wait until everything is sent, at most so long."""
        if self._waiting and not self.over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._sent.wait(), seconds)

    async def close(self) -> None:
        self.over.set()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        try:
            await asyncio.wait_for(self._room.disconnect(), CONNECT_TIMEOUT_S / 5)
        except TimeoutError:
            log.warning("a LiveKit room did not let go within %.0f s", CONNECT_TIMEOUT_S / 5)

    # ---- the SDK's events -------------------------------------------------------------------------------------------

    def _came(self, person: rtc.RemoteParticipant) -> None:
        """What is sent to somebody before they are active is lost."""
        if person.kind not in PEOPLE or person.state != rtc.ParticipantState.PARTICIPANT_STATE_ACTIVE:
            return
        self._events.came(
            rights_of(
                person.identity,
                person.name,
                person.metadata,
                person.attributes,
                person.permissions.can_publish_data,
            )
        )

    def _went(self, person: rtc.RemoteParticipant) -> None:
        self._events.went(person.identity, person.disconnect_reason == rtc.DisconnectReason.CLIENT_INITIATED)

    def _said(self, packet: rtc.DataPacket) -> None:
        if packet.participant is None or packet.topic not in tuple(Topic):
            return
        self._events.said(packet.participant.identity, Topic(packet.topic), packet.data)

    async def _send_all(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                message = self._waiting[0]
                to = list(message.to)
                try:
                    await self._room.local_participant.publish_data(
                        message.text, reliable=message.topic.reliable, destination_identities=to, topic=message.topic
                    )
                except rtc.participant.PublishDataError:
                    self._counts.dropped += 1  # while the connection is being made anew
                self._waiting.popleft()
            self._sent.set()
