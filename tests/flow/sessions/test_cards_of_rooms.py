"""Several worlds on one server: who opens a room says which one it is, and who comes later sees that one."""

import asyncio

import pytest
from worldroom.clients.python.signalling import RoomPlace
from worldroom.clock import LoopClock
from worldroom.engine.api import RefusalReason, Refused
from worldroom.engine.spec import EngineSpec
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.messages import Welcome
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rooms import UNATTENDED_S, Rooms
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_door import Screen
from worldroom.tests.fake_engine import narrated, started, toy


def test_the_first_one_in_says_which_world_a_room_has() -> None:
    async def scene() -> None:
        engine, _ = await started(cards=(toy(), narrated()))
        clock = LoopClock(asyncio.get_running_loop())
        rooms = Rooms(engine, Journal(clock), clock, RoomsSpec(card="toy"))

        async def world(room: str, card: str | None) -> str:
            screen = Screen()
            joined = await rooms.join(room, screen, None, None, card=card)
            assert isinstance(joined, Participant), joined
            assert isinstance(screen.messages[0], Welcome)
            return screen.messages[0].card

        assert await world("one", None) == "toy"
        assert await world("two", "toy-narrated") == "toy-narrated"
        assert await world("two", "toy") == "toy-narrated", "an open room keeps its world"
        refused = await rooms.join("three", Screen(), None, None, card="drive")
        assert isinstance(refused, Refused)
        assert refused.reason is RefusalReason.UNKNOWN_CARD
        assert refused.detail == "no world 'drive' here: there are toy, toy-narrated"
        assert (refused.queue_place, refused.retry_after_s) == (0, 0.0)
        assert {view.room: view.card for view in rooms.views()} == {"one": "toy", "two": "toy-narrated"}
        await rooms.close()
        await engine.close()

    run(scene())


def test_of_worlds_that_nobody_attends_the_one_goes_that_holds_what_is_waited_for() -> None:
    async def scene() -> None:
        engine, _ = await started(cards=(toy(), narrated()), spec=EngineSpec(slots=1))
        clock = LoopClock(asyncio.get_running_loop())
        rooms = Rooms(engine, Journal(clock), clock, RoomsSpec(card="toy"))

        async def ask(room: str, card: str) -> Participant | Refused:
            return await rooms.join(room, Screen(), None, None, card=card)

        first, second = await ask("first", "toy"), await ask("second", "toy-narrated")
        assert isinstance(first, Participant) and isinstance(second, Participant)
        first.leave()
        await asyncio.sleep(2 * UNATTENDED_S)
        for _ in range(3):
            assert isinstance(await ask("third", "toy-narrated"), Refused)
        assert [view.room for view in rooms.views()] == ["first", "second"], "the toy's place is of no use to it"
        second.leave()
        await asyncio.sleep(2 * UNATTENDED_S)
        assert isinstance(await ask("third", "toy-narrated"), Refused), "it hears its place, and room is made"
        assert isinstance(await ask("third", "toy-narrated"), Participant)
        assert [view.room for view in rooms.views()] == ["first", "third"], "though the other went earlier"
        await rooms.close()
        await engine.close()

    run(scene())


@pytest.mark.parametrize(
    ("url", "asked", "card"),
    [
        ("http://h:1/r/otter", None, None),
        ("http://h:1/r/otter?card=drive", None, "drive"),
        ("http://h:1/r/otter?card=drive#token=t", "toy", "toy"),
        ("http://h:1/?card=drive", None, "drive"),
    ],
)
def test_an_address_may_say_it(url: str, asked: str | None, card: str | None) -> None:
    assert RoomPlace.of(url, card=asked).card == card
