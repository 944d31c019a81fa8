"""Several worlds on one server: who opens a room says which one it is, and who comes later sees that one."""

import asyncio

import pytest
from worldroom.clients.python.signalling import RoomPlace
from worldroom.clock import LoopClock
from worldroom.engine.api import RefusalReason, Refused
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.messages import Welcome
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rooms import Rooms
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
