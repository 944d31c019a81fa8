"""On with the future that stands still: it is made again of its own parts, however late the edge comes to that."""

import asyncio
from collections.abc import Callable

import pytest
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.caches.parts import PartLost
from worldroom.engine.spec import EngineSpec
from worldroom.sessions import messages
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_door import Screen
from worldroom.tests.fake_engine import toy
from worldroom.tests.local_worker import LocalClient, ready


class LateEdge(LocalClient):
    """Its worker has done all it was told before the edge makes a world again. `breaks`: what that comes to instead."""

    breaks: Exception | None = None

    async def restore(self, world: bytes, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        await asyncio.sleep(0.2)
        if self.breaks is not None:
            raise self.breaks
        return await super().restore(world, events)


async def two_futures(breaks: Exception | None) -> tuple[list[messages.ServerMessage], int, int]:
    """A world that went back, and on in the other future: what its driver was told, the epoch of the last frame, and
    faults that were counted.
    """
    client = await ready(LateEdge(toy(), EngineSpec(slots=5, share_cap=1.0)))
    clock, screen = LoopClock(asyncio.get_running_loop()), Screen()
    spec = RoomsSpec(card=client.cards()[0].name, lease_s=600.0)
    rooms = Rooms(client, Journal(clock), clock, spec, futures=client)
    driver = await rooms.join("lobby", screen, None, None)
    assert isinstance(driver, Participant)
    await asyncio.sleep(4.0)
    driver.receive(messages.Rewind(1, 1.0))
    await asyncio.sleep(2.0)
    client.breaks = breaks
    driver.receive(messages.Choose(2, messages.Keep.OTHER))
    await asyncio.sleep(1.0)
    told, epoch, faults = [*screen.messages], screen.frames[-1].epoch, rooms.counters().faults
    await rooms.close()
    await client.close()
    return told, epoch, faults


def test_the_other_future_keeps_its_parts_until_it_is_made_again() -> None:
    told, epoch, faults = run(two_futures(None))
    assert [m for m in told if isinstance(m, messages.Problem)] == []
    assert [m.id for m in told if isinstance(m, messages.Applied)] == [1, 2]
    assert (epoch, faults) == (2, 0)


@pytest.mark.parametrize(
    ("breaks", "code", "counted"),
    [
        (PartLost("a part of the world is gone"), "no_place", 0),
        (OSError("no space left"), "turn_failed", 1),
        (KeyError("nobody thought of this"), "turn_failed", 1),
    ],
)
def test_a_future_that_cannot_be_had_is_said_and_the_world_goes_on(breaks: Exception, code: str, counted: int) -> None:
    told, epoch, faults = run(two_futures(breaks))
    assert [m.code for m in told if isinstance(m, messages.Problem)] == [code]
    assert [m.id for m in told if isinstance(m, messages.Applied)] == [1, 2], "by the world that went on"
    assert epoch == 2, "behind the turn that was none"
    assert faults == counted
