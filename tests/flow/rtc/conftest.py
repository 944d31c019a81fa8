"""A server on loopback around a room that needs no model: it encodes a moving bar and seats whoever comes."""

import asyncio
import fractions
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import av
import numpy as np
import pytest
import uvicorn
from worldroom.engine import api
from worldroom.rtc.edge import Edge, EdgeSpec
from worldroom.rtc.http.app import create_app
from worldroom.sessions.audience import Sink
from worldroom.sessions.counters import RoomsCounters
from worldroom.sessions.messages import (
    Accepted,
    ClientMessage,
    Input,
    Participants,
    Problem,
    Prompt,
    Role,
    RoomView,
    Welcome,
    WorldState,
)

WIDTH, HEIGHT, FPS = 320, 192, 30
TIMINGS = api.Timings(wait_us=10, step_us=20, decode_us=30, encode_us=40)


class BarEncoder:
    """x264 as the engine runs it: constrained baseline, no lookahead, key frames only when asked for."""

    def __init__(self) -> None:
        self._codec = av.CodecContext.create("libx264", "w")
        self._codec.width, self._codec.height, self._codec.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        self._codec.time_base = fractions.Fraction(1, 90_000)
        self._codec.framerate = fractions.Fraction(FPS, 1)
        self._codec.thread_count = 1
        self._codec.bit_rate = 1_000_000
        self._codec.options = {
            "preset": "ultrafast",
            "tune": "zerolatency",
            "profile": "baseline",
            "level": "3.1",
            "x264-params": "keyint=infinite:scenecut=0:repeat-headers=1:forced-idr=1:annexb=1",
        }
        self.pictures = 0

    def encode(self, pts: int, key: bool) -> bytes:
        picture = np.full((HEIGHT, WIDTH, 3), 32, np.uint8)
        column = self.pictures * 4 % (WIDTH - 16)
        picture[:, column : column + 16] = (255, 160, 0)
        self.pictures += 1
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
        frame.pts = pts
        frame.pict_type = av.video.frame.PictureType.I if key or self.pictures == 1 else av.video.frame.PictureType.NONE
        return b"".join(bytes(packet) for packet in self._codec.encode(frame))


@dataclass(eq=False)
class FakeSeat:
    """A seat that writes down what it is told."""

    room: "FakeRoom"
    sink: Sink
    participant: str
    token: str
    role: Role
    heard: list[ClientMessage] = field(default_factory=list)
    bad: list[tuple[str, int | None]] = field(default_factory=list)
    left: bool = False
    frames_when_left: int = -1

    def receive(self, message: ClientMessage) -> None:
        self.heard.append(message)
        match message:
            case Input():
                self.room.input_seq = max(self.room.input_seq, message.seq)
            case Prompt():
                self.sink.send(Accepted(id=message.id))
            case _:
                pass

    def malformed(self, detail: str, id: int | None) -> None:
        self.bad.append((detail, id))
        self.sink.send(Problem(code="malformed", detail=detail, id=id))

    def request_key(self, joined: bool = False) -> None:
        self.room.key_asked += 1
        self.room.wants_key = True

    def leave(self) -> None:
        self.left = True
        self.frames_when_left = self.room.frames
        self.room.seats.discard(self)


class FakeRoom:
    """Frames for every seat, one at a time under the test's control or at FPS."""

    def __init__(self) -> None:
        self.seats: set[FakeSeat] = set()
        self.all_seats: list[FakeSeat] = []
        self.encoder = BarEncoder()
        self.input_seq = 0
        self.frames = 0
        self.wants_key = False
        self.key_asked = 0
        self.keys: list[int] = []
        self.sent: list[api.Frame] = []

    def step(self) -> api.Frame:
        pts = self.frames * 3000
        key = self.wants_key
        self.wants_key = False
        data = self.encoder.encode(pts, key)
        key = key or self.frames == 0
        if key:
            self.keys.append(self.frames)
        frame = api.Frame(
            session="s1",
            frame=self.frames,
            chunk=self.frames,
            epoch=0,
            pts=pts,
            key=key,
            data=data,
            input_seq=self.input_seq,
            prompt_version=1,
            controls=(0.0,),
            begun=0.0,
            timings=TIMINGS,
        )
        self.frames += 1
        self.sent.append(frame)
        for seat in list(self.seats):
            seat.sink.frame(frame, 5)
        return frame

    async def run(self) -> None:
        while True:
            self.step()
            await asyncio.sleep(1 / FPS)


class FakeRooms:
    """One room under every name; refuses with `refusal` when that is set, opens once `waits` is where there is one."""

    def __init__(self) -> None:
        self.room = FakeRoom()
        self.refusal: api.Refused | None = None
        self.waits: asyncio.Event | None = None
        self.given_up = 0
        self.joins = 0

    async def join(
        self, room: str, sink: Sink, token: str | None, want_role: Role | None, name: str | None = None
    ) -> FakeSeat | api.Refused:
        if self.waits is not None:
            try:
                await self.waits.wait()
            except asyncio.CancelledError:
                self.given_up += 1
                raise
        if self.refusal is not None:
            return self.refusal
        self.joins += 1
        role = want_role or (Role.SPECTATOR if self.room.seats else Role.DRIVER)
        seat = FakeSeat(self.room, sink, f"p{self.joins}", token or f"token-{self.joins}", role)
        self.room.seats.add(seat)
        self.room.all_seats.append(seat)
        sink.send(
            Welcome(
                room=room,
                session="s1",
                participant=seat.participant,
                role=role,
                card="toy",
                title="Bars",
                width=WIDTH,
                height=HEIGHT,
                fps=FPS,
                controls=(),
                suggestions=(),
                prompt="bars",
                state=WorldState.RUNNING,
                epoch=0,
                chunk=self.room.frames,
                resumed=token is not None,
            )
        )
        sink.send(Participants(driver="p1", you=role, spectators=0))
        return seat

    def views(self) -> tuple[RoomView, ...]:
        return ()

    def counters(self) -> RoomsCounters:
        return RoomsCounters(rooms=1)


class FakeDoor:
    """An engine that only writes down its commands."""

    def __init__(self) -> None:
        self.posted: list[api.Command] = []
        self.ready = True

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        raise NotImplementedError

    def post(self, command: api.Command) -> None:
        self.posted.append(command)

    def cards(self) -> tuple[api.CardInfo, ...]:
        return ()

    def capacity(self) -> tuple[api.Capacity, ...]:
        return (api.Capacity("toy", "cpu", 1, 4, 0.1, 0.9, 100, 0, 0, 0, 0, 10, 1, 0, 0),)

    async def close(self) -> None:
        pass


@dataclass
class Served:
    """A running server: its address and the parts a test wants to look into."""

    base: str
    rooms: FakeRooms
    door: FakeDoor
    edge: Edge

    @property
    def room(self) -> FakeRoom:
        return self.rooms.room

    @property
    def url(self) -> str:
        return f"{self.base}/r/test"

    async def frames_until(self, true: Callable[[], bool], limit: int) -> int:
        """Make frames until the condition holds; how many it took. Fails after `limit`."""
        for count in range(limit):
            if true():
                return count
            self.room.step()
            await asyncio.sleep(1 / FPS)
        raise AssertionError(f"not within {limit} frames")

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait without making frames."""
        async with asyncio.timeout(15):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(web_root: Path, udp_ports: tuple[int, int] | None = None) -> AsyncIterator[Served]:
    rooms, door = FakeRooms(), FakeDoor()
    spec = EdgeSpec(web_root=web_root, loopback_only=True, udp_ports=udp_ports)
    app = create_app(rooms, door, spec)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=1, ws="none")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server._serve([listener]))
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    try:
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", rooms, door, app.state.edge)
    finally:
        server.should_exit = True
        await task
        listener.close()


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
def web_root(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<!doctype html><title>Worldroom: the lobby</title>")
    (tmp_path / "room.html").write_text("<!doctype html><title>Worldroom: a room</title>")
    (tmp_path / "missing.html").write_text("<!doctype html><h1>{title}</h1><p>{detail}</p><a href='{base}'>lobby</a>")
    return tmp_path


@pytest.fixture
async def served(web_root: Path) -> AsyncIterator[Served]:
    async with serving(web_root) as server:
        yield server


@pytest.fixture
async def served_on_one_port(web_root: Path) -> AsyncIterator[Served]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with serving(web_root, (port, port)) as server:
        yield server
