"""A participant without a browser: `async with join(url) as room`, send keys and prompts, iterate frames with receipts.

Reconnects by itself with its token, honouring Retry-After with jitter. All times are seconds of `time.monotonic()`.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aioice import Connection

from ...rtc import wire
from ...rtc.wire import Channel, Participants, Receipts, Role, ServerMessage, Welcome
from .first_frame import upload
from .latency import LatencyLog
from .link import EdgeLink
from .pad import Pad, key_of
from .pictures import Pictures, RoomFrame
from .recording import record
from .retry import Retry
from .signalling import NoServer, RoomPlace, RoomRefused
from .silence import LOOK_S, Line, Silence
from .steering import Steering

PING_LOOKS = 5
REPEAT_INTERVAL = 0.04
REPEATS = 3
GONE = 410
ENDS = ("taken_over", "room_closed", "left")
"""Problems after which coming back would be wrong: somebody else sits there, or the world is over."""


@dataclass(slots=True)
class RoomCounts:
    """What happened to this participant besides pictures."""

    problems: int = 0
    reconnects: int = 0
    unknown: int = 0
    """Messages of a newer server, which were ignored."""


class RoomClient(Steering):
    """See the module docstring; made by `join`. `decode=False` leaves pictures out (a cheap viewer)."""

    def __init__(
        self,
        place: RoomPlace,
        role: Role | None,
        name: str | None,
        loopback: bool,
        decode: bool,
        patience: float,
        seed: int,
        consent: bool = False,
        shape: Callable[[Connection], None] | None = None,
    ) -> None:
        super().__init__()
        self._place = place
        self._shape = shape
        self._name, self._consent = name, consent
        self._role = role
        self._loopback = loopback
        self.retry = Retry(patience, seed)
        self.link: EdgeLink | None = None
        self.token: str | None = None
        self._pad = Pad()
        self._repeats = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._failed: RoomRefused | NoServer | None = None
        self._ended: RoomRefused | None = None
        self.counts = RoomCounts()
        self.latency = LatencyLog()
        self.pictures = Pictures(decode, self.latency, self._ask_for_key)
        self.welcome: Welcome | None = None
        self.participants: Participants | None = None
        self.on_message: Callable[[ServerMessage], None] | None = None
        self.started_at = time.monotonic()

    # ---- what a participant does ------------------------------------------------------------------------------------

    def press(self, key: str) -> int:
        """Key down, by a control's name or a KeyboardEvent.code such as ArrowLeft; the sequence that receipts answer.
        Raises ValueError, with the keys there are, for one that presses nothing in this world.
        """
        at, before = time.monotonic(), self._pad.seq
        seq = self._changed(self._pad.press(key_of(self.welcome, key)))
        if seq > before:
            self.latency.pressed(seq, at)
        return seq

    def release(self, key: str) -> int:
        return self._changed(self._pad.release(key_of(self.welcome, key)))

    def tap(self, key: str) -> int:
        """Down and up at once; counts in exactly one chunk."""
        seq = self.press(key)
        self.release(key)
        return seq

    async def first_frame(self, file: Path) -> wire.FirstFrame:
        """Begin the world anew from a picture (PNG, JPEG, WebP) or the end of a video (MP4, WebM); the driver's alone.
        Raises `RoomRefused`, `NoServer`, OSError, or ValueError on a file of another name.
        """
        return await upload(self._place, self.token, file)

    async def record(self, running: bool = True) -> wire.RecordingView:
        """Have the server film the room, or end the film; the driver's alone. Raises `RoomRefused` or `NoServer`."""
        return await record(self._place, self.token, running)

    async def pass_wheel(self, name: str | None = None) -> int:
        """Hand the wheel to whoever goes by that name; without one let go of it, or take it when it is free.
        Raises `RoomRefused` when that is not possible, ValueError when nobody of that name is here.
        """
        people = self.participants.people if self.participants is not None else ()
        to = next((person.participant for person in people if person.name == name), None)
        if name is not None and to is None:
            raise ValueError(f"nobody called '{name}' is here: {', '.join(person.name for person in people)}")
        return await self._steer(lambda id: wire.PassWheel(id, to))

    async def frames(self) -> AsyncIterator[RoomFrame]:
        """Frames in order with their receipts; one that nobody takes in time is dropped and counted.
        Raises `RoomRefused` or `NoServer` when the room is gone and patience is over.
        """
        while (frame := await self.pictures.next()) is not None:
            yield frame
        if self._failed is not None:
            raise self._failed

    # ---- connection -------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        self.link = await self.retry.until_made(self._attempt)
        self._tasks = [asyncio.create_task(task) for task in (self._stay(), self._beat(), self._watch())]

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.link is not None:
            await self.link.close()
        self._answers.cancel()
        self.pictures.end()

    async def _attempt(self) -> EdgeLink:
        self._place = await self._place.named()
        if self.token is not None:
            await self._place.reached()
        link = EdgeLink(self._place, self._loopback, self._received, self.pictures.whole_frame, self._shape)
        try:
            self.welcome = await link.open(self.token, self._role, self._name, self._consent)
        except BaseException:
            await link.close()
            raise
        self.token = link.token
        return link

    def _ask_for_key(self) -> None:
        if self.link is not None:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks.append(asyncio.create_task(self.link.ask_for_key()))

    async def _stay(self) -> None:
        """Whenever the link is lost, make another one with the same token."""
        try:
            while self.link is not None:
                came = time.monotonic()
                await self.link.lost.wait()
                if self._ended is not None:
                    raise self._ended
                self._answers.lost(NoServer("the connection was lost before there was an answer"))
                await self.link.close()
                self.latency.reconnected()
                await self.retry.after(time.monotonic() - came)
                self.link = await self.retry.until_made(self._attempt)
                self.counts.reconnects += 1
                self._send_input()
        except (RoomRefused, NoServer) as failed:
            self._failed = failed
            self.pictures.end()

    async def _beat(self) -> None:
        """Repeat recent changes against loss."""
        while True:
            await asyncio.sleep(REPEAT_INTERVAL)
            if self._repeats > 0:
                self._repeats -= 1
                self._send_input()

    async def _watch(self) -> None:
        """Be heard every second, and notice when nobody is."""
        pings, watched, silence = 0, self.link, Silence()
        doubt: asyncio.Task[None] | None = None
        for looks in itertools.count():
            await asyncio.sleep(LOOK_S)
            link = self.link
            if link is None or link.lost.is_set():
                continue
            if link is not watched:
                watched, silence = link, Silence()
            line = silence.look(link.received())
            if line is Line.OVER:
                link.end()
            elif line is not Line.WELL or looks % PING_LOOKS == 0:
                pings += 1
                link.send(wire.Ping(pings, time.monotonic() * 1000), Channel.CONTROL)
            if line is Line.DOUBT and (doubt is None or doubt.done()):
                doubt = asyncio.create_task(self._doubt(link, silence))

    async def _doubt(self, link: EdgeLink, silence: Silence) -> None:
        """A server that answers another way and is not heard here has another path now."""
        with suppress(NoServer):
            await self._place.reached()
            await asyncio.sleep(LOOK_S)  # for what a busy server sends here as well
            if silence.doubtful:
                link.end()

    # ---- messages ---------------------------------------------------------------------------------------------------

    def _changed(self, seq: int) -> int:
        self._repeats = REPEATS
        self._send_input()
        return seq

    def _send_input(self) -> None:
        if self.link is not None:
            self.link.send(self._pad.message(time.monotonic() * 1000), Channel.INPUT)

    def _send(self, message: wire.ClientMessage) -> bool:
        return self.link is not None and self.link.send(message, Channel.CONTROL)

    def _received(self, message: ServerMessage | None) -> None:
        if message is None:
            self.counts.unknown += 1
            return
        if isinstance(message, wire.Receipt | Receipts):
            self.pictures.explain(message.items if isinstance(message, Receipts) else (message,))
        elif isinstance(message, wire.Accepted | wire.Applied):
            self._answers.heard(message)
        elif isinstance(message, Participants):
            self.participants = message
        elif isinstance(message, wire.Problem):
            self.counts.problems += 1
            if message.code in ENDS:
                self._ended = RoomRefused(GONE, message.code, message.detail, None)
            self._answers.failed(message.id or 0, RoomRefused(400, message.code, message.detail, None))
        if self.on_message is not None:
            self.on_message(message)


@asynccontextmanager
async def join(
    url: str,
    *,
    role: Role | None = None,
    name: str | None = None,
    loopback: bool = False,
    decode: bool = True,
    patience: float = 30.0,
    seed: int = 0,
    first_frame: Path | None = None,
    access: str | None = None,
    cacert: Path | None = None,
    consent: bool = False,
    card: str | None = None,
    drivers: str | None = None,
    shape: Callable[[Connection], None] | None = None,
) -> AsyncIterator[RoomClient]:
    """Join a room by its page's address and stay for the length of the block; by the server's alone, in a fresh room.
    `access`: the token that opens it, where it is not in the address. `cacert`: who signed the server's certificate.
    `name`: what the others read. `patience`: seconds to keep trying while the server is away or full. `first_frame`:
    begin the world from this file, see `RoomClient.first_frame`. `consent`: what is done here may be used to train
    models. `card`, `drivers`: the world of a room that is not open yet, and how several people drive it (`turns`,
    `controls:2`, `vote:5`), where the address does not say it. `shape`: lays a network
    of its own on the sockets of each connection, for tests. Raises `RoomRefused`, `NoServer`, ValueError.
    """
    place = RoomPlace.of(url, access, cacert, card, drivers)
    room = RoomClient(place, role, name, loopback, decode, patience, seed, consent, shape)
    await room._open()
    try:
        if first_frame is not None:
            await room.first_frame(first_frame)
        yield room
    finally:
        await room._close()
