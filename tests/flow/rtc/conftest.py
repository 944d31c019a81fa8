"""A server on loopback with real rooms around an engine that needs no model: its worlds are a moving bar."""

import asyncio
import fractions
import random
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import av
import numpy as np
import pytest
from fastapi import FastAPI
from worldroom.cli.serve import listen
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.engine.output.encode import KeyGate
from worldroom.rtc.access.spec import AccessSpec
from worldroom.rtc.edge import Edge, EdgeSpec
from worldroom.rtc.http.app import create_app
from worldroom.rtc.http.library import Past
from worldroom.rtc.http.server import EdgeServer
from worldroom.rtc.livekit.spec import LiveKitSpec
from worldroom.rtc.media.ice_servers import IceServersSpec
from worldroom.sessions.journal import events
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.past import PastRooms
from worldroom.sessions.rooms.recording import RoomRecordings
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.tests.journaled_sessions import Shelf

WIDTH, HEIGHT, FPS = 320, 192, 30
TIMINGS = api.Timings(wait_us=10, step_us=20, decode_us=30, encode_us=40)
CARD = api.CardInfo(
    name="toy",
    version="1",
    title="Bars",
    width=WIDTH,
    height=HEIGHT,
    fps=FPS,
    frames_per_chunk=1,
    controls=(api.ControlInfo(name="up", keys=("ArrowUp",)), api.ControlInfo(name="left", keys=("ArrowLeft",))),
    suggestions=(),
    price_us=10_000,
    bytes_per_session=1000,
)

C = TypeVar("C", bound=api.Command)
E = TypeVar("E", bound=events.Event)


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


class BarEngine:
    """One world, one chunk of one frame at a time under the test's control. Keeps what is posted.

    Refuses with `refusal` when that is set; opens once `gate` is set, where there is one.
    """

    def __init__(self) -> None:
        self.posted: list[api.Command] = []
        self.ready = True
        self.refusal: api.Refused | None = None
        self.gate: asyncio.Event | None = None
        self.frames = 0
        self.keys: list[int] = []
        self._encoder = BarEncoder()
        self._gate = KeyGate()
        self._conditions: api.Conditions | None = None
        self._worlds: dict[str, Callable[[api.Event], None]] = {}

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        if self.gate is not None:
            await self.gate.wait()
        if self.refusal is not None:
            return self.refusal
        self._worlds[command.session] = events
        return api.Opened(command.session, CARD)

    def post(self, command: api.Command) -> None:
        self.posted.append(command)
        match command:
            case api.Begin():
                self._conditions = command.conditions
            case api.RequestKey():
                self._gate.request(command.joined, SystemClock().now())
            case api.Close():
                self._worlds.pop(command.session, None)
            case _:
                pass

    def asked(self, kind: type[C]) -> list[C]:
        return [command for command in self.posted if isinstance(command, kind)]

    def step(self) -> None:
        """The next frame of the world, if there is one."""
        for session, tell in list(self._worlds.items()):
            tell(api.ChunkDue(session, self.frames, deadline=0.0))
            assert self._conditions is not None, "the session answers at once"
            frame = self._frame(session, self._conditions)
            self.frames += 1
            tell(frame)
            tell(api.ChunkDone(session, frame.chunk, frame.epoch, "digest", 0, TIMINGS))

    async def run(self) -> None:
        while True:
            self.step()
            await asyncio.sleep(1 / FPS)

    def cards(self) -> tuple[api.CardInfo, ...]:
        return ()

    def capacity(self) -> tuple[api.Capacity, ...]:
        return (api.Capacity("toy", "cpu", 1, 4, 0.1, 0.9, 100, 0, 0, 0, 0, 10, 1, 0, 0),)

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return ()

    def steps(self) -> tuple[api.BatchRan, ...]:
        return ()

    async def close(self) -> None:
        pass

    def _frame(self, session: str, conditions: api.Conditions) -> api.Frame:
        now = SystemClock().now()
        key = self.frames == 0 or self._gate.opens(now)
        if key:
            self._gate.made(now)
            self.keys.append(self.frames)
        pts = self.frames * 3000
        return api.Frame(
            session=session,
            frame=self.frames,
            chunk=self.frames,
            epoch=conditions.epoch,
            pts=pts,
            key=key,
            data=self._encoder.encode(pts, key),
            input_seq=conditions.input_seq,
            prompt_version=conditions.prompt_version,
            controls=conditions.controls,
            begun=now,
            timings=TIMINGS,
        )


@dataclass
class Served:
    """A running server: its address and the parts a test wants to look into."""

    base: str
    rooms: Rooms
    journal: Journal
    engine: BarEngine
    edge: Edge
    shelf: Shelf
    app: FastAPI

    @property
    def url(self) -> str:
        return f"{self.base}/r/test"

    def journaled(self, kind: type[E]) -> list[E]:
        """Events of the one world."""
        session = self.rooms.views()[0].session
        return [event for event in self.journal.buffered(session) if isinstance(event, kind)]

    async def frames_until(self, true: Callable[[], bool], limit: int) -> int:
        """Make frames until the condition holds; how many it took. Fails after `limit`."""
        for count in range(limit):
            if true():
                return count
            self.engine.step()
            await asyncio.sleep(1 / FPS)
        raise AssertionError(f"not within {limit} frames")

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait without making frames."""
        async with asyncio.timeout(15):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def _packed(sessions: Sequence[str], kind: str) -> Path:
    """In place of an export: a file with what was asked for."""
    path = Path(tempfile.mkdtemp()) / "export.tar"
    path.write_text(f"{kind}: {' '.join(sessions)}")
    return path


@asynccontextmanager
async def serving(
    web_root: Path,
    udp_ports: tuple[int, int] | None = None,
    access: AccessSpec | None = None,
    ice: IceServersSpec | None = None,
    livekit: LiveKitSpec | None = None,
    stores: bool = False,
) -> AsyncIterator[Served]:
    """`stores`: the journal is written to files, in place of being kept for the test to look at."""
    clock, engine = SystemClock(), BarEngine()
    shelf = Shelf(web_root / "data")
    journal = Journal.open(clock, shelf.store, shelf.folder / "spool") if stores else Journal(clock)
    films = RoomRecordings(shelf.recordings, every=False)
    rooms = Rooms(engine, journal, clock, RoomsSpec(card="toy"), recordings=films)
    past = Past(shelf.library, shelf.eraser, _packed, PastRooms(engine, shelf.history, random.Random(1)))
    spec = EdgeSpec(web_root=web_root, loopback_only=True, udp_ports=udp_ports, ice=ice or IceServersSpec())
    app = create_app(rooms, engine, spec, access=access, films=films, past=past, livekit=livekit)
    listener = listen("127.0.0.1", 0)
    server = EdgeServer(app)
    task = asyncio.create_task(server.until_signal(listener))
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    try:
        yield Served(
            f"http://127.0.0.1:{listener.getsockname()[1]}", rooms, journal, engine, app.state.edge, shelf, app
        )
    finally:
        server.should_exit = True
        await task
        listener.close()
        await rooms.close()
        if stores:
            await journal.close()


@pytest.fixture
def web_root(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<!doctype html><title>Worldroom: the lobby</title>")
    (tmp_path / "library.html").write_text("<!doctype html><title>Worldroom: the library</title>")
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
