"""Rooms on the real engine in this process: in virtual time without an edge, or behind a real one on loopback."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from worldroom.cli.serve import listen
from worldroom.clock import LoopClock, SystemClock
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loaded import LoadedCard
from worldroom.rtc.edge import Edge, EdgeSpec
from worldroom.rtc.http.app import create_app
from worldroom.rtc.http.server import EdgeServer
from worldroom.sessions.drivers import DriversRule
from worldroom.sessions.journal import events
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.messages import Welcome
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.tests.fake_door import Screen
from worldroom.tests.fake_engine import FakeDevice, started, toy


class Server:
    """Engine on a fake device, journal in memory and rooms, as `serve` puts them together."""

    engine: Engine
    device: FakeDevice

    async def start(
        self, card: LoadedCard | None = None, spec: EngineSpec | None = None, drivers: str = "turns"
    ) -> None:
        """`card` None = the toy."""
        card = card or toy()
        self.engine, self.device = await started(cards=(card,), spec=spec)
        clock = LoopClock(asyncio.get_running_loop())
        self.journal = Journal(clock)
        rooms_spec = RoomsSpec(card=card.card.name, drivers=DriversRule.read(drivers))
        self.rooms = Rooms(self.engine, self.journal, clock, rooms_spec)

    async def join(self, token: str | None = None) -> tuple[Participant, Screen]:
        screen = Screen()
        joined = await self.rooms.join("lobby", screen, token, None)
        assert isinstance(joined, Participant), joined
        return joined, screen

    def events(self, screen: Screen) -> list[events.JournalEvent]:
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome)
        return self.journal.buffered(welcome.session)

    async def stop(self) -> None:
        await self.rooms.close()
        await self.engine.close()
        self.engine.check_integrity()


async def stream(journaled: Iterable[events.JournalEvent]) -> AsyncIterator[events.JournalEvent]:
    """Events as a journal gives them."""
    for event in journaled:
        yield event


@asynccontextmanager
async def edge(card: LoadedCard, web_root: Path) -> AsyncIterator[str]:
    """A real edge and engine that serve `card` on loopback; gives the address."""
    async with behind_edge(card, web_root) as (address, _):
        yield address


@asynccontextmanager
async def behind_edge(card: LoadedCard, web_root: Path, loopback_only: bool = True) -> AsyncIterator[tuple[str, Edge]]:
    """The same for who also looks into the edge."""
    clock = SystemClock()
    engine = Engine((card,), clock, EngineSpec())
    await engine.start()
    rooms = Rooms(engine, Journal(clock), clock, RoomsSpec(card=card.card.name))
    app = create_app(rooms, engine, EdgeSpec(web_root=web_root, loopback_only=loopback_only), clock)
    server = EdgeServer(app)
    listener = listen("127.0.0.1", 0)
    serving = asyncio.create_task(server.until_signal(listener))
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", app.state.edge
    server.should_exit = True
    await serving
    listener.close()
    await rooms.close()
    await engine.close()
