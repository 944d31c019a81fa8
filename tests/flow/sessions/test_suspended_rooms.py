"""Rooms that one server suspends and the next restores: two of them on one real Redis, a fake engine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.sessions.drivers import DriversRule
from worldroom.sessions.journal import events
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.journal.redis_embedded import EmbeddedRedis
from worldroom.sessions.messages import (
    Accepted,
    Feedback,
    Input,
    Leave,
    Participants,
    Problem,
    Prompt,
    Role,
    Transition,
    Welcome,
)
from worldroom.sessions.rooms import suspend_store
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.remade import NotRemade, remade
from worldroom.sessions.rooms.room_record import RoomRecord
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.sessions.rooms.suspend import RoomSuspension
from worldroom.sessions.rooms.suspend_store import SuspendedRoom, SuspendStore, SuspendStoreError
from worldroom.sessions.session.prompt_versions import PromptsRecord
from worldroom.sessions.session.spec import SessionRecord
from worldroom.tests.fake_door import BEAT, CARD, FakeDoor, FakeWorld, Screen


class KeepingDoor(FakeDoor):
    """A fake engine that can put its worlds aside. `weights` are those it serves; `busy` refuses for now."""

    def __init__(self, weights: str = "w0") -> None:
        super().__init__(opening_s=0.0)
        self.weights = weights
        self.busy = False

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        answer = await super().open(command, events)
        return answer if isinstance(answer, api.Refused) else msgspec.structs.replace(answer, weights=self.weights)

    def suspend(self, session: str) -> bytes | None:
        world = self.worlds[session]
        return msgspec.msgpack.encode((session, world.seed, world.epoch, world.chunk, world.carry))

    async def restore(self, world: bytes, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        session, seed, epoch, chunk, carry = msgspec.msgpack.decode(world)
        if self.busy:
            return api.Refused(session, api.RefusalReason.NOT_READY, "the worker is starting", 0, 1.0)
        restored = self.worlds[session] = FakeWorld(session, seed, events, epoch, chunk, carry)
        restored.task = asyncio.get_running_loop().create_task(restored.paused())
        return api.Opened(session, CARD, self.weights, steps=2, precision="int")


class House:
    """One server's life."""

    def __init__(self, rooms: Rooms, journal: Journal, door: KeepingDoor) -> None:
        self.rooms, self.journal, self.door = rooms, journal, door

    async def join(self, token: str | None = None) -> tuple[Participant, Screen]:
        screen = Screen()
        joined = await self.rooms.join("lobby", screen, token, None)
        assert isinstance(joined, Participant), joined
        return joined, screen


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[EmbeddedRedis]:
    server = EmbeddedRedis(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


@asynccontextmanager
async def house(redis: EmbeddedRedis, door: KeepingDoor | None = None, drivers: str = "turns") -> AsyncIterator[House]:
    client, door = await redis.client(), door or KeepingDoor()
    journal = Journal(SystemClock())
    spec = RoomsSpec(card="toy", lease_s=30.0, drivers=DriversRule.read(drivers))
    rooms = Rooms(door, journal, SystemClock(), spec, suspension=RoomSuspension(SuspendStore(client, keep_s=60), door))
    yield House(rooms, journal, door)
    await rooms.close()
    await door.close()
    await client.aclose()


async def played(redis: EmbeddedRedis) -> tuple[str, Welcome, int]:
    """A world with a prompt of its own, driven and suspended: the driver's token, its welcome, the next chunk."""
    async with house(redis) as here:
        driver, screen = await here.join()
        await asyncio.sleep(3 * BEAT)
        driver.receive(Prompt(id=1, text="dusk", transition=Transition.CUT))
        await asyncio.sleep(5 * BEAT)
        driver.leave()
        await asyncio.sleep(2 * BEAT)
        chunk = here.rooms.views()[0].chunk
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome)
        return driver.token, welcome, chunk


async def test_place_wheel_prompt_and_chunk_go_on(redis: EmbeddedRedis) -> None:
    token, before, chunk = await played(redis)
    async with house(redis) as here:
        stranger, _ = await here.join()
        driver, screen = await here.join(token)
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome)
        assert (stranger.role, driver.role) == (Role.SPECTATOR, Role.DRIVER)
        assert (welcome.session, welcome.participant, welcome.resumed) == (before.session, before.participant, True)
        assert welcome.prompt == "dusk"
        driver.receive(Input(seq=1, held=("KeyW",)))
        await asyncio.sleep(6 * BEAT)
        assert screen.frames[0].chunk == chunk
        assert screen.frames[-1].controls == (1.0, 0.0)
        begun = [event for event in here.journal.buffered(welcome.session) if isinstance(event, events.ChunkBegun)]
        assert begun[0].conditions.prompts == (api.PromptShare("key:dusk", 1.0),)
        assert here.journal.number(welcome.session) > len(here.journal.buffered(welcome.session)), "numbers go on"


async def test_what_was_shown_before_can_be_rated_after_a_restart(redis: EmbeddedRedis) -> None:
    token, before, chunk = await played(redis)
    async with house(redis) as here:
        driver, screen = await here.join(token)
        driver.receive(Feedback(id=7, chunk=chunk - 1, value=1))
        driver.receive(Feedback(id=8, chunk=chunk + 1000, value=1))
        answers = [message for message in screen.messages if isinstance(message, Accepted | Problem)]
        assert answers[0] == Accepted(id=7)
        assert isinstance(answers[1], Problem) and (answers[1].id, answers[1].code) == (8, "not_shown")
        given = [event for event in here.journal.buffered(before.session) if isinstance(event, events.FeedbackGiven)]
        assert [(event.chunk, event.epoch) for event in given] == [(chunk - 1, 0)]
        assert given[0].frame >= 0, "a server that was told to stop knew which"


async def test_a_room_comes_back_once_and_is_noted_from_then_on(redis: EmbeddedRedis) -> None:
    _, before, _ = await played(redis)
    client = await redis.client()
    async with house(redis) as here:
        await here.join()
        found = await SuspendStore(client, keep_s=60).find("lobby", ["toy"])
        assert found is not None and found.world == b""
        assert found.record.session.name == before.session
    await client.aclose()


async def test_an_engine_that_is_not_ready_loses_nothing(redis: EmbeddedRedis) -> None:
    token, before, _ = await played(redis)
    door = KeepingDoor()
    door.busy = True
    async with house(redis, door) as here:
        refused = await here.rooms.join("lobby", Screen(), token, None)
        assert isinstance(refused, api.Refused) and refused.reason is api.RefusalReason.NOT_READY
        door.busy = False
        _, screen = await here.join(token)
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome) and welcome.session == before.session


async def test_a_room_outlives_the_weights_of_its_world_which_begins_anew(
    redis: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    token, before, _ = await played(redis)
    async with house(redis, KeepingDoor(weights="w1")) as here:
        _, screen = await here.join(token)
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome)
        assert (welcome.session, welcome.resumed) == (before.session, True)
        assert "its world had weights 'w0', it begins anew by 'w1'" in caplog.text
        await asyncio.sleep(6 * BEAT)
        assert screen.frames[0].epoch == before.epoch + 1
        happened = here.journal.buffered(welcome.session)
        assert next(event.chunk for event in happened if isinstance(event, events.ChunkCommitted)) == 0
        assert [event.weights for event in happened if isinstance(event, events.WeightsLoaded)] == ["w1"]
        assert [event.text for event in happened if isinstance(event, events.PromptAsked)] == ["dusk"], "the same words"


async def test_a_world_that_is_too_large_ends_with_its_server(
    redis: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(suspend_store, "WORLD_BYTES_MAX", 8)
    async with house(redis) as here:
        driver, _ = await here.join()
        await asyncio.sleep(5 * BEAT)
        driver.leave()
        await asyncio.sleep(2 * BEAT)
        session = here.rooms.views()[0].session
        await here.rooms.close()
        assert here.journal.buffered(session)[-1] == events.SessionClosed(reason="shutdown")
    assert "at most 8 are kept" in caplog.text


async def test_what_another_version_left_is_no_crash(redis: EmbeddedRedis, caplog: pytest.LogCaptureFixture) -> None:
    client = await redis.client()
    await client.mset({f"{suspend_store.PREFIX}room:lobby": b'{"room":1}', f"{suspend_store.PREFIX}world:lobby": b"x"})
    with pytest.raises(SuspendStoreError, match="cannot be read"):
        await SuspendStore(client, keep_s=60).find("lobby", ["toy"])
    async with house(redis) as here:
        await here.join()
        assert "a room begins anew" in caplog.text
    await client.aclose()


def record(session: str, card: str = "toy") -> RoomRecord:
    prompts = PromptsRecord((), {}, 0)
    return RoomRecord("lobby", "turns", (), (), SessionRecord(session, card, "w0", 1, 0, 5, False, 9, prompts))


class OtherContract:
    """A history whose one journal was written under a contract to come."""

    async def events(self, session: str) -> AsyncIterator[events.JournalEvent]:
        yield events.SessionOpened("lobby", "toy", "1", "w0", 2, "int", 7, 0, contract=9)


async def test_a_journal_of_a_contract_that_nobody_here_reads_is_said_and_its_room_begins_anew() -> None:
    noted = SuspendedRoom(record("one"), b"")
    with pytest.raises(NotRemade, match="this journal has contract version 9, this program reads 1 to 2"):
        await remade(noted, OtherContract(), KeepingDoor())


@pytest.mark.parametrize("form", [1, 2])
async def test_a_room_that_an_earlier_version_suspended_goes_on(redis: EmbeddedRedis, form: int) -> None:
    token, before, chunk = await played(redis)
    client = await redis.client()
    found = msgspec.json.decode(await client.get(f"{suspend_store.PREFIX}room:lobby"))
    del found["version"], found["drivers"]
    (holder,) = found.pop("holders")
    found |= {"driver": holder} if form == 1 else {"drivers": [holder]}
    await client.set(f"{suspend_store.PREFIX}room:lobby", msgspec.json.encode(found))
    await client.aclose()
    async with house(redis) as here:
        stranger, _ = await here.join()
        driver, screen = await here.join(token)
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome)
        assert (welcome.session, welcome.chunk, welcome.drivers) == (before.session, chunk, "turns")
        assert (stranger.role, driver.role) == (Role.SPECTATOR, Role.DRIVER)


async def test_a_room_that_a_later_version_suspended_begins_anew_and_the_log_says_why(
    redis: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    token, before, _ = await played(redis)
    client = await redis.client()
    found = msgspec.json.decode(await client.get(f"{suspend_store.PREFIX}room:lobby"))
    await client.set(f"{suspend_store.PREFIX}room:lobby", msgspec.json.encode(found | {"version": 9, "teams": 2}))
    await client.aclose()
    async with house(redis) as here:
        _, screen = await here.join(token)
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome) and welcome.session != before.session
        assert "another version wrote it (form 9, this one reads 1 to 4)" in caplog.text


async def test_two_who_shared_the_wheel_find_their_own_places_again(redis: EmbeddedRedis) -> None:
    async with house(redis, drivers="controls:2") as here:
        one, _ = await here.join()
        two, _ = await here.join()
        await asyncio.sleep(5 * BEAT)
        one.receive(Leave(id=1))
        two.leave()
        await asyncio.sleep(2 * BEAT)
    async with house(redis) as here:
        again, screen = await here.join(two.token)
        assert again.role is Role.DRIVER
        told = next(m for m in reversed(screen.messages) if isinstance(m, Participants))
        assert [place.holder for place in told.places] == [None, two.participant]
        assert told.places[1].controls == (0, 1), "nobody is there for the others"


async def test_a_note_neither_replaces_a_suspended_world_nor_outlives_its_room(redis: EmbeddedRedis) -> None:
    client = await redis.client()
    store = SuspendStore(client, keep_s=60)
    await store.note(record("one"))
    assert await store.find("lobby", ["toy"]) == SuspendedRoom(record("one"), b"")
    await store.put(SuspendedRoom(record("one"), b"its world"))
    await store.note(record("late"))  # was on its way when the room was suspended
    assert await store.find("lobby", ["toy"]) == SuspendedRoom(record("one"), b"its world")
    assert await store.find("lobby", ["drive"]) is None
    await store.note(record("two", "drive"))
    assert await store.find("lobby", ["drive"]) == SuspendedRoom(record("two", "drive"), b"")
    await store.forget_note("lobby")
    assert await store.find("lobby", ["toy"]) == SuspendedRoom(record("one"), b"its world")
    await store.restored(record("one"))
    assert await store.find("lobby", ["toy"]) == SuspendedRoom(record("one"), b""), "killed now, it is not lost"
    await store.forget("lobby")
    assert await store.find("lobby", ["toy"]) is None
    await client.aclose()


async def test_a_stop_says_in_one_line_what_was_put_aside(
    redis: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "worldroom.sessions"):
        await played(redis)
    assert caplog.messages[-1] == "stopped: 1 room is suspended until the next start (lobby), 0 rooms end"
    assert caplog.messages[-2] == "room lobby: a driver leaves, 0 in"
