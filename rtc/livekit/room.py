"""One room here and there: joins the LiveKit room of the same name as a participant and brings its people in.

    LiveKit participant -- data topics --> LiveKitPerson --> the room's session
    session --> frames --> one published track          receipts, messages --> data topics

Connects again, with pauses, for as long as it is wanted.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence

from ...clock import Clock
from ...engine.api import Frame, Refused, Rendition
from ...sessions.audience import GOING_AWAY, FrameInput
from ...sessions.messages import Problem, Receipt, ServerMessage, Welcome
from ...sessions.rooms.rights import Rights
from ...sessions.rooms.rooms import Rooms
from ..media.bitrate import ViewerReport
from ..media.fanout import Fanout, Subscription
from ..receipts import AT_ONCE, bundled, receipt_of
from ..wire import Channel, channel_of, encode
from .link import LinkLost, LiveKitLink, Outgoing
from .person import LiveKitPerson
from .spec import LiveKitCounts, LiveKitSpec, Topic, host_token
from .video import VideoTrack

log = logging.getLogger(__name__)

PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
LAST_WORDS_S = 0.3


class LiveKitRoom:
    """See the module docstring. `fanout`: the room's stream, whose rate suits LiveKit's side too."""

    def __init__(
        self, name: str, spec: LiveKitSpec, rooms: Rooms, fanout: Fanout, clock: Clock, counts: LiveKitCounts
    ) -> None:
        self.name = name
        self._counts = counts
        self._spec, self._rooms, self._fanout, self._clock = spec, rooms, fanout, clock
        self._people: dict[str, LiveKitPerson] = {}
        self._link: LiveKitLink | None = None
        self._track: VideoTrack | None = None
        self._subscription = Subscription(
            Rendition.H264, fanout.bitrate.ceiling, self._report, self._drives, self._want_key, rungs=False
        )
        self._shown = -1
        self._kbps: int | None = None
        self._receipts: list[Receipt] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.wanted_at = clock.now()
        """When somebody was last there or asked to come."""

    @property
    def people(self) -> int:
        return len(self._people)

    async def run(self) -> None:
        """Until cancelled."""
        failures = 0
        try:
            while True:
                link = LiveKitLink(self, self._counts)
                self._link = link
                try:
                    await link.connect(self._spec.url, host_token(self._spec, self.name, self._clock.wall()))
                    self._counts.connects += 1
                    failures = 0
                    log.info("room %s is a room of the LiveKit server, too", self.name)
                    await link.over.wait()
                except LinkLost as error:
                    log.info("room %s: no way into the LiveKit room: %s", self.name, error)
                self._nobody_there()
                await link.close()
                await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1
        finally:
            await self._close()

    # ---- events of the link -----------------------------------------------------------------------------------------

    def came(self, rights: Rights) -> None:
        identity = rights.identity or ""
        before = self._people.get(identity)
        if before is not None:
            if before.rights == rights and not before.over:
                return
            before.leave(on_purpose=False)
        self.wanted_at = self._clock.now()

        def tell(message: ServerMessage) -> None:
            self._tell(identity, message)

        def show(frame: Frame, given: FrameInput) -> None:
            self._show(identity, frame, given)

        person = self._people[identity] = LiveKitPerson(rights, tell, show, self._counts)
        self._start(self._seat(identity, person))

    def went(self, identity: str, on_purpose: bool) -> None:
        person = self._people.pop(identity, None)
        if person is not None:
            person.leave(on_purpose)
        self.wanted_at = self._clock.now()

    def said(self, identity: str, topic: Topic, data: bytes) -> None:
        person = self._people.get(identity)
        if person is not None:
            person.receive(topic.channel, data)

    # ---- people -----------------------------------------------------------------------------------------------------

    async def _seat(self, identity: str, person: LiveKitPerson) -> None:
        """Ask until there is a place, for as long as they are there."""
        while self._people.get(identity) is person:
            joined = await self._rooms.join(self.name, person, None, None, rights=person.rights)
            if not isinstance(joined, Refused):
                person.seated(joined)
                person.request_key()
                return
            place = f" (place {joined.queue_place} in line)" if joined.queue_place else ""
            person.send(Problem(code=joined.reason, detail=joined.detail + place))
            await asyncio.sleep(max(0.5, joined.retry_after_s))

    def _tell(self, identity: str, message: ServerMessage) -> None:
        if isinstance(message, Welcome) and self._track is None:
            self._start(self._publish(message.width, message.height))
        if self._link is not None:
            topic = Topic.CONTROL if channel_of(message) is Channel.CONTROL else Topic.RECEIPTS
            self._link.send(Outgoing(topic, encode(message), (identity,)))

    def _nobody_there(self) -> None:
        """The connection is gone: their seats wait for the lease, as after any lost connection."""
        for person in self._people.values():
            person.leave(on_purpose=False)
        self._people.clear()
        self._unpublished()

    # ---- the world's video ------------------------------------------------------------------------------------------

    async def _publish(self, width: int, height: int) -> None:
        link = self._link
        if link is None or self._track is not None:
            return
        try:
            track = await link.publish(width, height)
        except LinkLost as error:
            log.warning("room %s: its video could not be published: %s", self.name, error)
            link.over.set()
            return
        if self._link is link and self._track is None:
            self._track = track
            self._fanout.join(self._subscription)
            self._want_key()

    def _unpublished(self) -> None:
        self._track, self._link, self._kbps = None, None, None
        self._fanout.leave(self._subscription)

    def _show(self, identity: str, frame: Frame, given: FrameInput) -> None:
        """Every person's sink hands the same frames on; each is published once. A driver's receipts are their own."""
        track = self._track
        if track is None:
            return
        if frame.frame != self._shown:
            self._shown = frame.frame
            self._pass_on(track, frame)
        receipt = receipt_of(frame, given, frame.pts & 0xFFFFFFFF, self._clock.now())
        person = self._people.get(identity)
        if person is not None and person.drives:
            self._send_receipts((receipt,), (identity,))
        elif not self._receipts or self._receipts[-1].frame != frame.frame:
            self._receipts.append(receipt)
            if len(self._receipts) >= AT_ONCE:
                receipts, self._receipts = self._receipts, []
                watching = tuple(name for name, person in self._people.items() if not person.drives)
                self._send_receipts(receipts, () if len(watching) == len(self._people) else watching)

    def _pass_on(self, track: VideoTrack, frame: Frame) -> None:
        told = track.feedback()
        self._kbps = told.kbps or self._kbps
        if told.wants_key and not frame.key:
            self._want_key()
        self._fanout.pass_on(frame)
        track.show(frame)

    def _send_receipts(self, receipts: Sequence[Receipt], to: tuple[str, ...]) -> None:
        if self._link is not None:
            self._link.send(Outgoing(Topic.RECEIPTS, encode(bundled(receipts)), to))

    def _want_key(self) -> None:
        person = next(iter(self._people.values()), None)
        if person is not None:
            person.request_key()

    def _report(self) -> ViewerReport:
        return ViewerReport(self._fanout.sent_kbps, self._kbps, 0.0)

    def _drives(self) -> bool:
        return any(person.drives for person in self._people.values())

    # ---- the end ----------------------------------------------------------------------------------------------------

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close(self) -> None:
        link = self._link
        for person in list(self._people.values()):
            person.send(Problem(code=GOING_AWAY, detail="the server leaves the LiveKit room"))
            person.leave(on_purpose=False)
        self._people.clear()
        for task in list(self._tasks):
            task.cancel()
        if link is not None:
            await link.flush(LAST_WORDS_S)
            await link.close()
        self._unpublished()
