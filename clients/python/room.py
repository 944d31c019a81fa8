"""A participant without a browser: `async with join(url) as room`, send keys and prompts, iterate frames with receipts.

Reconnects by itself with its token, honouring Retry-After with jitter. All times are seconds of `time.monotonic()`.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import av

from ...rtc.wire import (
    Accepted,
    Applied,
    Channel,
    ClientMessage,
    Feedback,
    Ping,
    Problem,
    Prompt,
    Receipt,
    Receipts,
    ResetWorld,
    Role,
    ServerMessage,
    Transition,
    Welcome,
)
from .latency import LatencyLog
from .link import Link, NoServer, Place, RoomRefused
from .pad import Pad

FRAMES_KEPT = 8
RECEIPTS_KEPT = 64
UNJOINED_MAX = 8
PING_INTERVAL = 1.0
SILENCE_TIMEOUT = 4.0
REPEAT_INTERVAL = 0.04
REPEATS = 3
RETRY_FIRST = 0.25
RETRY_MAX = 8.0

T = TypeVar("T")
FrameTap = Callable[[int, bytes, bool], None]


@dataclass(frozen=True, slots=True)
class RoomFrame:
    """One decoded frame. `receipt` is None where it was lost on its unreliable channel."""

    rtp: int
    picture: av.VideoFrame | None
    receipt: Receipt | None
    decoded_at: float


@dataclass(slots=True)
class RoomCounts:
    """What this participant saw and lost."""

    frames: int = 0
    receipts: int = 0
    dropped: int = 0
    undecodable: int = 0
    problems: int = 0
    reconnects: int = 0


class RoomClient:
    """See the module docstring; made by `join`. `decode=False` leaves pictures out (a cheap viewer)."""

    def __init__(self, url: str, role: Role | None, loopback: bool, decode: bool, patience: float, seed: int) -> None:
        self._place = Place.of(url)
        self._role = role
        self._loopback = loopback
        self._decode = decode
        self._patience = patience
        self._dice = random.Random(seed)
        self._link: Link | None = None
        self._decoder: av.VideoCodecContext | None = None
        self._token: str | None = None
        self._pad = Pad()
        self._repeats = 0
        self._ids = 0
        self._answers: dict[int, asyncio.Future[None]] = {}
        self._applied: dict[int, asyncio.Future[int]] = {}
        self._unjoined: deque[RoomFrame] = deque()
        self._receipts: dict[int, Receipt] = {}
        self._frames: asyncio.Queue[RoomFrame | None] = asyncio.Queue(FRAMES_KEPT)
        self._tasks: list[asyncio.Task[None]] = []
        self.counts = RoomCounts()
        self.latency = LatencyLog()
        self.welcome: Welcome | None = None
        self.tap_frame: FrameTap | None = None
        self.on_message: Callable[[ServerMessage], None] | None = None
        self.on_joined: Callable[[RoomFrame], None] | None = None
        self.started_at = time.monotonic()

    # ---- what a participant does ------------------------------------------------------------------------------------

    def press(self, key: str) -> int:
        """Key down (a KeyboardEvent.code such as ArrowLeft); the sequence to look for in receipts."""
        self.latency.pressed(self._pad.seq + 1, time.monotonic())
        return self._changed(self._pad.press(key))

    def release(self, key: str) -> int:
        return self._changed(self._pad.release(key))

    def tap(self, key: str) -> int:
        """Down and up at once; counts in exactly one chunk."""
        seq = self.press(key)
        self.release(key)
        return seq

    async def prompt(self, text: str, transition: Transition = Transition.BLEND, seconds: float = 0.5) -> int:
        """Change the world by words; returns the id for `applied` once the server has accepted it."""
        return await self._steer(lambda id: Prompt(id, text, transition, seconds))

    async def reset(self, seed: int | None = None) -> int:
        return await self._steer(lambda id: ResetWorld(id, seed))

    async def like(self, chunk: int, value: int) -> int:
        return await self._steer(lambda id: Feedback(id, chunk, value))

    async def applied(self, id: int) -> int:
        """The chunk at which a steer took effect."""
        return await self._applied.setdefault(id, asyncio.get_running_loop().create_future())

    async def frames(self) -> AsyncIterator[RoomFrame]:
        """Frames in order; one that nobody takes in time is dropped and counted."""
        while (frame := await self._frames.get()) is not None:
            yield frame

    # ---- connection -------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        self._link = await self._connect(time.monotonic() + self._patience)
        self._tasks = [asyncio.create_task(self._stay()), asyncio.create_task(self._beat())]

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._link is not None:
            await self._link.close()
        for answer in self._answers.values():
            answer.cancel()
        for applied in self._applied.values():
            applied.cancel()
        self._offer_frame(None)

    async def _connect(self, until: float) -> Link:
        """Try until `until`; a refusal says when to come back, anything else backs off."""
        wait = RETRY_FIRST
        while True:
            link = Link(self._place, self._loopback, self._received, self._whole_frame)
            try:
                self.welcome = await link.open(self._token, self._role)
                self._token = link.token
                return link
            except RoomRefused as refused:
                await link.close()
                pause = refused.retry_after_s
                if pause is None or time.monotonic() + pause > until:
                    raise
            except NoServer:
                await link.close()
                pause, wait = wait, min(wait * 2, RETRY_MAX)
                if time.monotonic() + pause > until:
                    raise
            except BaseException:
                await link.close()
                raise
            await asyncio.sleep(pause * self._dice.uniform(1.0, 1.5))

    async def _stay(self) -> None:
        """Whenever the link is lost, make another one with the same token."""
        try:
            while self._link is not None:
                await self._link.lost.wait()
                await self._link.close()
                self.latency.reconnected()
                self._link = await self._connect(time.monotonic() + self._patience)
                self.counts.reconnects += 1
                self._send_input()
        except (RoomRefused, NoServer):
            self._offer_frame(None)

    async def _beat(self) -> None:
        """Repeat recent changes against loss, and be heard every second."""
        pings, last_ping = 0, 0.0
        while True:
            await asyncio.sleep(REPEAT_INTERVAL)
            now = time.monotonic()
            if self._repeats > 0:
                self._repeats -= 1
                self._send_input()
            if now - last_ping >= PING_INTERVAL and self._link is not None:
                pings, last_ping = pings + 1, now
                self._link.send(Ping(pings, now * 1000), Channel.CONTROL)
                if now - self._link.heard_at > SILENCE_TIMEOUT:
                    self._link.end()

    # ---- messages ---------------------------------------------------------------------------------------------------

    def _changed(self, seq: int) -> int:
        self._repeats = REPEATS
        self._send_input()
        return seq

    def _send_input(self) -> None:
        if self._link is not None:
            self._link.send(self._pad.message(time.monotonic() * 1000), Channel.INPUT)

    async def _steer(self, message: Callable[[int], ClientMessage]) -> int:
        self._ids += 1
        id = self._ids
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers[id] = answer
        self._applied.setdefault(id, asyncio.get_running_loop().create_future())
        if self._link is None or not self._link.send(message(id), Channel.CONTROL):
            raise NoServer("the room is not connected")
        try:
            await answer
        finally:
            self._answers.pop(id, None)
        return id

    def _received(self, message: ServerMessage) -> None:
        if isinstance(message, Receipt | Receipts):
            self._explained(message.items if isinstance(message, Receipts) else (message,))
        elif isinstance(message, Accepted) and message.id in self._answers:
            _settle(self._answers[message.id], None)
        elif isinstance(message, Applied):
            _settle(self._applied.setdefault(message.id, asyncio.get_running_loop().create_future()), message.chunk)
        elif isinstance(message, Problem):
            self.counts.problems += 1
            if message.id in self._answers and not self._answers[message.id].done():
                self._answers[message.id].set_exception(RoomRefused(400, message.code, message.detail, None))
        if self.on_message is not None:
            self.on_message(message)

    def _explained(self, receipts: tuple[Receipt, ...]) -> None:
        for receipt in receipts:
            self.counts.receipts += 1
            self._receipts[receipt.rtp] = receipt
            while len(self._receipts) > RECEIPTS_KEPT:
                del self._receipts[next(iter(self._receipts))]
        self._join_receipts()

    # ---- frames -----------------------------------------------------------------------------------------------------

    def _whole_frame(self, rtp: int, data: bytes, key: bool) -> None:
        if self.tap_frame is not None:
            self.tap_frame(rtp, data, key)
        picture = self._decoded(data, key)
        if self._decode and picture is None:
            return
        now = time.monotonic()
        self.counts.frames += 1
        self.latency.decoded(now)
        self._unjoined.append(RoomFrame(rtp, picture, None, now))
        self._join_receipts()

    def _decoded(self, data: bytes, key: bool) -> av.VideoFrame | None:
        if not self._decode:
            return None
        if self._decoder is None:
            self._decoder = av.VideoCodecContext.create("h264", "r")
            self._decoder.thread_count = 1
        try:
            pictures = self._decoder.decode(av.Packet(data))
        except av.FFmpegError:
            pictures = []
        if pictures:
            return pictures[-1]
        self.counts.undecodable += 1
        if self._link is not None and not key:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks.append(asyncio.create_task(self._link.ask_for_key()))
        return None

    def _join_receipts(self) -> None:
        """Hand frames on in order, each with its receipt; one whose receipt seems lost goes without."""
        while self._unjoined:
            frame = self._unjoined[0]
            receipt = self._receipts.pop(frame.rtp, None)
            later = any(other.rtp in self._receipts for other in self._unjoined)
            if receipt is None and not later and len(self._unjoined) < UNJOINED_MAX:
                return
            self._unjoined.popleft()
            joined = RoomFrame(frame.rtp, frame.picture, receipt, frame.decoded_at)
            if receipt is not None:
                self.latency.contains(receipt.input_seq, frame.decoded_at)
            if self.on_joined is not None:
                self.on_joined(joined)
            self._offer_frame(joined)

    def _offer_frame(self, frame: RoomFrame | None) -> None:
        if self._frames.full():
            self._frames.get_nowait()
            self.counts.dropped += 1
        self._frames.put_nowait(frame)


def _settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


@asynccontextmanager
async def join(
    url: str,
    *,
    role: Role | None = None,
    loopback: bool = False,
    decode: bool = True,
    patience: float = 30.0,
    seed: int = 0,
) -> AsyncIterator[RoomClient]:
    """Join a room by its page's address and stay for the length of the block.

    `patience`: seconds to keep trying while the server is away or full. Raises `RoomRefused`, `NoServer`, ValueError.
    """
    room = RoomClient(url, role, loopback, decode, patience, seed)
    await room._open()
    try:
        yield room
    finally:
        await room._close()
