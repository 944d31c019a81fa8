"""Rooms that go on from a moment of an earlier session: the same bits up to there, its journal, its replay."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import cast

import pytest
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.spec import EngineSpec
from worldroom.sessions import messages
from worldroom.sessions.journal import events
from worldroom.sessions.journal.history import History
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.journal.replay import ReplayAsk, replay
from worldroom.sessions.journal.script import ReplayError, Script, read_session
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.past import NoMoment, PastRooms
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_door import Screen
from worldroom.tests.fake_engine import toy
from worldroom.tests.local_worker import LocalClient, ready, relabelled

WORDS = "a red desert"


class Kept:
    """What a journal holds, as `History` reads it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.deleted: set[str] = set()

    async def events(self, session: str) -> AsyncIterator[events.JournalEvent]:
        for event in [] if session in self.deleted else self._journal.buffered(session):
            yield event


class House:
    """Rooms of one server, and what they journal."""

    def __init__(self, client: LocalClient) -> None:
        self.client, clock = client, LoopClock(asyncio.get_running_loop())
        self.journal = Journal(clock)
        self.kept = Kept(self.journal)
        self.past = PastRooms(client, self.history, random.Random(1))
        spec = RoomsSpec(card=client.cards()[0].name, lease_s=600.0)
        self.rooms = Rooms(client, self.journal, clock, spec, futures=client, past=self.past)

    @property
    def history(self) -> History:
        return cast(History, self.kept)

    async def join(self, room: str) -> tuple[Participant, Screen, messages.Welcome]:
        screen = Screen()
        driver = await self.rooms.join(room, screen, None, None)
        assert isinstance(driver, Participant), driver
        welcome = screen.messages[0]
        assert isinstance(welcome, messages.Welcome)
        return driver, screen, welcome

    async def script(self, session: str) -> Script:
        return await read_session(self.history, session)

    async def replayed(self, script: Script) -> list[str]:
        """What differs in an engine of its own, as `worldroom replay` has it."""
        client = await ready(LocalClient(toy(), EngineSpec(slots=4)))
        try:
            again = await replay(client, script, "again", engine=client)
        finally:
            await client.close()
        assert again.unseen == 0 and again.chunks == sum(len(epoch.chunks) for epoch in script.epochs) > 0
        return [f"{each.epoch}.{each.chunk}" for each in again.mismatches]

    async def close(self) -> None:
        await self.rooms.close()
        await self.client.close()


async def house() -> House:
    return House(await ready(LocalClient(toy(), EngineSpec(slots=6, share_cap=1.0))))


async def played(house: House) -> str:
    """Keys, words, a restart, and back in another future; its session."""
    driver, _, welcome = await house.join("lobby")
    driver.receive(messages.Input(seq=1, held=("ArrowUp",)))
    await asyncio.sleep(2.0)
    driver.receive(messages.ResetWorld(1, seed=77))
    driver.receive(messages.Prompt(2, WORDS))
    await asyncio.sleep(2.0)
    driver.receive(messages.Rewind(3, 0.5))
    driver.receive(messages.Input(seq=2, held=("ArrowLeft",)))
    await asyncio.sleep(2.0)
    return welcome.session


def chunks_of(script: Script, epoch: int) -> list[int]:
    return [each.chunk for each in script.of(epoch).chunks]


def test_a_world_goes_on_in_a_new_room_and_the_child_replays_bit_for_bit() -> None:
    async def scene() -> None:
        h = await house()
        session = await played(h)
        parent = await h.script(session)
        turned = parent.playing
        assert turned == 2
        moment = chunks_of(parent, turned)[5]
        room = await h.past.plan(session, moment)

        driver, screen, welcome = await h.join(room)
        assert (welcome.chunk, welcome.epoch, welcome.room) == (moment, turned, room)
        driver.receive(messages.Input(seq=1, held=("ArrowRight",)))
        await asyncio.sleep(2.0)
        changed = [message for message in screen.messages if isinstance(message, messages.PromptChanged)]
        assert [message.text for message in changed] == [WORDS], "the words of that moment"
        driver.receive(messages.Rewind(1, 0.5))
        await asyncio.sleep(1.0)
        driver.receive(messages.ResetWorld(2))
        await asyncio.sleep(1.0)
        assert [m for m in screen.messages if isinstance(m, messages.Problem)] == []

        child = await h.script(welcome.session)
        assert child.opened.origin == events.Origin(session, turned, moment)
        assert chunks_of(child, turned)[0] == moment and child.parent is not None
        assert [len(epoch.chunks) > 5 for epoch in child.epochs] == [True] * 3
        assert await h.replayed(child) == []

        again = await h.past.plan(welcome.session, chunks_of(child, turned)[-1])
        _, _, third = await h.join(again)
        await asyncio.sleep(4.0)  # a hundred chunks are made again first
        assert await h.replayed(await h.script(third.session)) == [], "also of a child's child"
        await h.close()

    run(scene())


def test_the_same_keys_from_the_same_moment_make_the_same_world() -> None:
    async def scene() -> None:
        h = await house()
        session = await played(h)
        made = []
        for _ in range(2):
            _, _, welcome = await h.join(await h.past.plan(session, 12, epoch=0))
            await asyncio.sleep(1.5)
            script = await h.script(welcome.session)
            made.append([each.digest for each in script.of(0).chunks][:6])
        assert made[0] == made[1] and len(made[0]) == 6
        await h.close()

    run(scene())


def test_a_moment_that_is_not_there_is_refused_with_those_that_are() -> None:
    async def scene() -> None:
        h = await house()
        session = await played(h)
        for chunk, epoch in ((0, None), (10**6, None), (3, 1), (3, 9)):
            with pytest.raises(NoMoment, match="there are 1 to"):
                await h.past.plan(session, chunk, epoch)
        with pytest.raises(ReplayError):
            await h.past.plan("nobody", 3)
        room = await h.past.plan(session, 3, 0)
        h.kept.deleted.add(session)
        _, _, welcome = await h.join(room)
        await asyncio.sleep(0.5)
        with pytest.raises(ReplayError, match=f"it goes on from session {session}"):
            await h.script(welcome.session)
        await h.close()

    run(scene())


def test_other_weights_than_it_was_made_with_are_said_and_nothing_is_open() -> None:
    async def scene() -> None:
        h = await house()
        session = await played(h)
        room = await h.past.plan(session, 5, 0)
        client = await ready(LocalClient(relabelled(toy(), "others"), EngineSpec(slots=4)))
        h.past.engine = client
        refused = await h.rooms.join(room, Screen(), None, None)
        assert isinstance(refused, api.Refused) and "this server has weights 'others'" in refused.detail
        assert not h.rooms.has(room)
        await client.close()
        await h.close()

    run(scene())


def test_other_weights_play_a_session_as_a_counterfactual_only_when_that_is_asked_for() -> None:
    async def scene() -> None:
        h = await house()
        script = await h.script(await played(h))
        client = await ready(LocalClient(relabelled(toy(), "others"), EngineSpec(slots=4)))
        with pytest.raises(ReplayError, match="this server has weights 'others'"):
            await replay(client, script, "no", engine=client)
        again = await replay(client, script, "yes", engine=client, ask=ReplayAsk(any_weights=True))
        assert again.counterfactual == f"weights 'others' for '{script.opened.weights}'"
        assert (again.chunks, again.mismatches) == (sum(len(epoch.chunks) for epoch in script.epochs), ())
        await client.close()
        await h.close()

    run(scene())
