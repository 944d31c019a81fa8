"""Rooms on a fake engine in virtual time: who drives, what survives a reload or a cut, and what is never shown."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.sessions.journal import events
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.journal.replay import MadeBy, Mismatch, ReplayError, read, replay
from worldroom.sessions.messages import (
    Accepted,
    Applied,
    Feedback,
    Input,
    KeyEdge,
    Participants,
    PassWheel,
    PauseWorld,
    Person,
    Ping,
    PlaceView,
    Pong,
    Problem,
    Prompt,
    PromptChanged,
    ResetWorld,
    ResumeWorld,
    Role,
    StateChanged,
    Transition,
    Welcome,
    WorldState,
)
from worldroom.sessions.rooms.log import WaitLog, stopped
from worldroom.sessions.rooms.names import person_name
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_door import BEAT, TIMINGS, FakeDoor, Screen

M = TypeVar("M")


class House:
    """Rooms over a fake door; entropy counts, so names and seeds are the same in every run."""

    def __init__(self, door: FakeDoor, spec: RoomsSpec) -> None:
        self.door = door
        self.journal = Journal(LoopClock(asyncio.get_running_loop()))
        numbers: Iterator[int] = iter(range(1, 10_000))
        clock = LoopClock(asyncio.get_running_loop())
        self.rooms = Rooms(door, self.journal, clock, spec, lambda n: next(numbers).to_bytes(n, "big"))

    async def join(
        self, room: str = "lobby", token: str | None = None, want: Role | None = None, name: str | None = None
    ) -> tuple[Participant, Screen]:
        screen = Screen()
        joined = await self.rooms.join(room, screen, token, want, name)
        assert isinstance(joined, Participant), joined
        return joined, screen

    def journaled(self, kind: Any) -> list[Any]:
        session = next(iter(self.door.worlds))
        return [event for event in self.journal.buffered(session) if isinstance(event, kind)]


def play(
    scene: Callable[[House], Awaitable[None]], door: Callable[[], FakeDoor] = FakeDoor, spec: RoomsSpec | None = None
) -> None:
    async def main() -> None:
        house = House(door(), spec or RoomsSpec(card="toy"))
        await scene(house)
        await house.rooms.close()
        assert house.door.worlds == {}, "every world is closed with the house"

    run(main())


def got(screen: Screen, kind: type[M]) -> list[M]:
    return [message for message in screen.messages if isinstance(message, kind)]


def codes(screen: Screen) -> list[str]:
    return [problem.code for problem in got(screen, Problem)]


def name_of(joined: Participant) -> str:
    """The animal that a participant is when it has no wish."""
    return person_name(joined.participant, None, ())


async def beats(count: float) -> None:
    await asyncio.sleep(count * BEAT)


def test_the_first_in_drives_and_others_watch_the_same_world() -> None:
    async def scene(house: House) -> None:
        driver, one = await house.join()
        watcher, two = await house.join()
        await beats(5)
        assert (driver.role, watcher.role) == (Role.DRIVER, Role.SPECTATOR)
        assert isinstance(one.messages[0], Welcome) and isinstance(two.messages[0], Welcome)
        assert one.messages[0].session == two.messages[0].session
        here = (Person(driver.participant, name_of(driver)), Person(watcher.participant, name_of(watcher)))
        for screen, you in ((one, Role.DRIVER), (two, Role.SPECTATOR)):
            place = PlaceView(driver.participant, 0, (0, 1))
            told = Participants(driver.participant, you, 1, here, drivers=(driver.participant,), places=(place,))
            assert got(screen, Participants)[-1] == told
        assert [f.frame for f in two.frames] == [f.frame for f in one.frames][-len(two.frames) :]

    play(scene)


def test_joins_at_the_same_time_open_one_session() -> None:
    async def scene(house: House) -> None:
        seats = await asyncio.gather(*(house.join() for _ in range(4)))
        assert len(house.door.worlds) == 1
        assert [joined.role for joined, _ in seats] == [Role.DRIVER] + [Role.SPECTATOR] * 3

    play(scene)


def test_a_key_press_becomes_a_frame_with_its_sequence_and_hold_time() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        await beats(3.5)
        driver.receive(Input(seq=1, held=("KeyW",), edges=(KeyEdge(seq=1, key="KeyW", down=True),)))
        await beats(3)
        first = next(i for i, frame in enumerate(screen.frames) if frame.input_seq == 1)
        assert screen.frames[first].controls == (1.0, 0.0)
        assert screen.frames[first - 1].controls == (0.0, 0.0)
        assert 0 < screen.given[first].hold_us <= BEAT * 1e6
        assert screen.given[first - 1].hold_us == 0

    play(scene)


def test_a_30_ms_tap_shows_in_exactly_one_chunk() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        for tap in range(10):  # at ten phases of the beat
            await asyncio.sleep(0.203)
            down = KeyEdge(seq=2 * tap + 1, key="KeyA", down=True)
            up = KeyEdge(seq=2 * tap + 2, key="KeyA", down=False)
            driver.receive(Input(seq=down.seq, held=("KeyA",), edges=(down,)))
            await asyncio.sleep(0.030)
            driver.receive(Input(seq=up.seq, held=(), edges=(down, up)))
        await beats(5)
        assert sum(frame.controls[1] for frame in screen.frames) == 10.0

    play(scene)


def test_a_prompt_is_accepted_then_applied_at_the_chunk_that_shows_it() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        await beats(4)
        driver.receive(Prompt(id=7, text="a snowy night", transition=Transition.BLEND, seconds=0.16))
        await beats(8)
        answers = [m for m in screen.messages if isinstance(m, Accepted | Applied)]
        assert answers[0] == Accepted(id=7)
        assert isinstance(answers[1], Applied) and answers[1].id == 7
        first = next(frame for frame in screen.frames if frame.prompt_version == 2)
        assert first.chunk == answers[1].chunk
        assert got(screen, PromptChanged)[-1] == PromptChanged(version=2, text="a snowy night")
        begun = [e.conditions for e in house.journaled(events.ChunkBegun) if e.conditions.prompt_version == 2]
        night = [{share.key: share.weight for share in c.prompts}["key:a snowy night"] for c in begun]
        assert night[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
        assert {c.epoch for c in begun} == {0}, "words redirect without a new epoch"

    play(scene)


def test_a_world_begins_with_its_first_prompt() -> None:
    async def scene(house: House) -> None:
        _, screen = await house.join()
        await beats(6)
        first = house.journaled(events.ChunkBegun)[0].conditions
        assert [(share.key, share.weight) for share in first.prompts] == [("key:a sunny day", 1.0)]
        assert {frame.prompt_version for frame in screen.frames} == {1}

    play(scene, door=lambda: FakeDoor(encode_s=0.1))


def test_a_prompt_that_cannot_be_encoded_is_answered_and_changes_nothing() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        await beats(2)
        driver.receive(Prompt(id=3, text="???"))
        await beats(4)
        assert got(screen, Problem) == [Problem(code="prompt", detail="no words in it", id=3)]
        assert {frame.prompt_version for frame in screen.frames} == {1}

    play(scene)


def test_a_reload_takes_the_place_and_the_wheel_over() -> None:
    async def scene(house: House) -> None:
        before, old = await house.join()
        await house.join()
        before.receive(Input(seq=50, held=("KeyW",)))
        await beats(4)
        after, new = await house.join(token=before.token)
        old_frames = len(old.frames)
        before.receive(Input(seq=51, held=("KeyA",)))
        before.leave()  # the edge notices the old connection's end later
        await beats(4)
        after.receive(Input(seq=1, held=("KeyA",)))
        await beats(3)
        welcome = got(new, Welcome)[0]
        assert (welcome.participant, welcome.role, welcome.resumed) == (before.participant, Role.DRIVER, True)
        assert old.messages[-1] == Problem(code="taken_over", detail="this seat was taken over by a newer connection")
        assert len(old.frames) == old_frames, "the old connection is shown nothing more"
        assert (new.frames[-1].input_seq, new.frames[-1].controls) == (1, (0.0, 1.0))
        assert new.frames[2].controls == (0.0, 0.0), "keys of the old connection are released"
        assert house.rooms.counters().participants == 2

    play(scene)


def test_late_chunks_are_counted_as_the_engine_judges_them() -> None:
    async def scene(house: House) -> None:
        await house.join()
        world = next(iter(house.door.worlds.values()))
        for chunk, late in ((100, False), (101, True), (102, False)):
            world.events(api.ChunkDone(world.name, chunk, 0, "digest", 4000, TIMINGS, late))
        assert house.rooms.counters().chunks_late == 1

    play(scene)


def test_a_cut_of_five_seconds_goes_on_from_the_same_chunk() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        await beats(10)
        driver.leave()
        await asyncio.sleep(5.0)
        held = house.rooms.views()[0]
        assert (held.state, held.viewers, held.driver) == (WorldState.HELD, 0, True)
        again, back = await house.join(token=driver.token)
        await beats(10)
        welcome = got(back, Welcome)[0]
        assert (welcome.session, welcome.resumed, welcome.state) == (held.session, True, WorldState.RUNNING)
        assert again.role is Role.DRIVER
        assert welcome.chunk == screen.frames[-1].chunk + 1 or welcome.chunk == screen.frames[-1].chunk + 2
        done = [event.chunk for event in house.journaled(events.ChunkCommitted)]
        assert done == list(range(len(done))), "no chunk is missing, none is done twice"
        assert [type(command) for command in house.door.of(api.Pause | api.Resume)] == [api.Pause, api.Resume]

    play(scene)


def test_the_place_of_a_world_nobody_comes_back_to_is_free_after_the_lease() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        first = got(screen, Welcome)[0].session
        driver.leave()
        await asyncio.sleep(59.0)
        assert list(house.door.worlds) == [first]
        await asyncio.sleep(2.0)
        assert house.door.worlds == {} and house.rooms.views() == ()
        again, fresh = await house.join(token=driver.token)
        welcome = got(fresh, Welcome)[0]
        assert (welcome.session != first, welcome.resumed, again.role) == (True, False, Role.DRIVER)

    play(scene)


def test_the_driver_hands_the_wheel_to_somebody_by_name() -> None:
    async def scene(house: House) -> None:
        ada, screen = await house.join(name=" Ada   L ")
        bob, seen = await house.join(name="Bob")
        other, _ = await house.join(name="Bob")
        named = {person.name: person.participant for person in got(screen, Participants)[-1].people}
        assert named == {"Ada L": ada.participant, "Bob": bob.participant, "Bob 2": other.participant}
        bob.receive(PassWheel(id=1, to=bob.participant))
        assert codes(seen) == ["not_driving"]
        ada.receive(PassWheel(id=2, to="nobody"))
        assert codes(screen) == ["unknown_participant"]
        ada.receive(PassWheel(id=3, to=named["Bob"]))
        assert (ada.role, bob.role, other.role) == (Role.SPECTATOR, Role.DRIVER, Role.SPECTATOR)
        assert got(screen, Participants)[-1].driver == named["Bob"]
        bob.receive(Input(seq=1, held=("KeyW",)))
        await beats(3)
        assert screen.frames[-1].controls == (1.0, 0.0)
        bob.leave()
        assert [person.name for person in got(screen, Participants)[-1].people] == ["Ada L", "Bob 2"]
        back, again = await house.join(token=bob.token)
        assert back.role is Role.DRIVER
        assert [person.name for person in got(again, Participants)[-1].people] == ["Ada L", "Bob", "Bob 2"]

    play(scene)


def test_spectators_steer_nothing_and_are_told_so() -> None:
    async def scene(house: House) -> None:
        await house.join()
        watcher, screen = await house.join()
        for seq in range(1, 50):
            watcher.receive(Input(seq=seq, held=("KeyW",)))
        watcher.receive(Prompt(id=5, text="night"))
        watcher.receive(ResetWorld(id=6))
        await beats(3)
        assert [(p.code, p.id) for p in got(screen, Problem)] == [
            ("not_driving", None),
            ("not_driving", 5),
            ("not_driving", 6),
        ]
        assert {frame.controls for frame in screen.frames} == {(0.0, 0.0)}

    play(scene)


def test_the_driver_hands_over_the_wheel() -> None:
    async def scene(house: House) -> None:
        driver, one = await house.join()
        watcher, two = await house.join()
        watcher.receive(Input(seq=2, held=(), edges=(KeyEdge(seq=1, key="KeyA", down=True),)))
        driver.receive(PassWheel(id=1, to="nobody"))
        driver.receive(PassWheel(id=2, to=watcher.participant))
        await beats(3)
        assert codes(one) == ["unknown_participant"]
        assert (driver.role, watcher.role) == (Role.SPECTATOR, Role.DRIVER)
        assert got(two, Participants)[-1].you is Role.DRIVER
        assert {frame.controls for frame in two.frames} == {(0.0, 0.0)}, "taps from before the hand-over do not count"
        watcher.receive(PassWheel(id=3))  # lets go
        driver.receive(PassWheel(id=4))
        assert driver.role is Role.DRIVER
        changes = [(event.before, event.after) for event in house.journaled(events.DriverChanged)]
        d, w = driver.participant, watcher.participant
        assert changes == [(None, d), (d, w), (w, None), (None, d)]

    play(scene)


def test_after_a_reset_no_old_frame_is_shown() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        for phase in range(8):
            await asyncio.sleep(0.333)
            shown = len(screen.frames)
            driver.receive(ResetWorld(id=phase, seed=100 + phase))
            await beats(4)
            assert {frame.epoch for frame in screen.frames[shown:]} == {phase + 1}
            assert screen.frames[shown].chunk == 0
        answers = [m for m in screen.messages if isinstance(m, Accepted | Applied)]
        assert answers == [m for i in range(8) for m in (Accepted(id=i), Applied(id=i, chunk=0))]
        assert got(screen, StateChanged)[-1] == StateChanged(state=WorldState.RUNNING, epoch=8)
        assert [event.seed for event in house.journaled(events.EpochStarted)] == list(range(100, 108))
        assert house.rooms.counters().frames_old_epoch > 0, "the scene had old frames to hold back"

    play(scene)


def test_a_paused_world_stays_paused_over_a_cut_and_resumes() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        await beats(5)
        driver.receive(PauseWorld(id=1))
        driver.receive(PauseWorld(id=2))
        assert codes(screen) == ["not_running"]
        driver.leave()
        await asyncio.sleep(2.0)
        again, back = await house.join(token=driver.token)
        assert got(back, Welcome)[0].state is WorldState.PAUSED
        await beats(5)
        assert back.frames == []
        again.receive(ResumeWorld(id=3))
        await beats(5)
        assert len(back.frames) >= 4
        assert [m.id for m in got(back, Applied)] == [3]

    play(scene)


def test_taps_at_a_paused_world_steer_nothing_but_a_held_key_does() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        await beats(3)
        driver.receive(PauseWorld(id=1))
        await beats(3)
        shown = len(screen.frames)
        edges = (
            KeyEdge(seq=1, key="KeyA", down=True),
            KeyEdge(seq=2, key="KeyA", down=False),
            KeyEdge(seq=3, key="KeyW", down=True),
        )
        driver.receive(Input(seq=3, held=("KeyW",), edges=edges))
        driver.receive(ResumeWorld(id=2))
        await beats(4)
        assert {frame.controls for frame in screen.frames[shown:]} == {(1.0, 0.0)}

    play(scene)


def test_a_prompt_whose_embedding_is_known_already_is_applied_as_well() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        await beats(3)
        driver.receive(Prompt(id=1, text="a sunny day", transition=Transition.CUT))
        await beats(3)
        assert [m.id for m in got(screen, Applied)] == [1]
        assert screen.frames[-1].prompt_version == 2

    play(scene, door=lambda: FakeDoor(encode_s=0.0))


def test_ten_thousand_malformed_messages_are_all_counted_and_some_answered() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        for number in range(10_000):
            driver.malformed("not JSON", number)
        await beats(3)
        assert house.rooms.counters().malformed == 10_000
        assert codes(screen) == ["malformed"] * 40
        assert len(screen.frames) >= 2

    play(scene)


def test_floods_of_input_and_prompts_are_bounded() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        for seq in range(1, 1001):
            driver.receive(Input(seq=seq, held=()))
        for id in range(20):
            driver.receive(Prompt(id=id, text="night"))
        counters = house.rooms.counters()
        assert (counters.inputs, counters.inputs_dropped) == (250, 750)
        assert (counters.prompts, counters.messages_dropped) == (5, 15)
        assert codes(screen) == ["too_fast"] * 16

    play(scene)


def test_feedback_and_pings_are_answered() -> None:
    async def scene(house: House) -> None:
        await house.join()
        watcher, screen = await house.join()
        await asyncio.sleep(1.0)
        watcher.receive(Feedback(id=1, chunk=3, value=-1))
        watcher.receive(Ping(id=2, sent_ms=12.5))
        assert [m for m in screen.messages if isinstance(m, Accepted | Pong)] == [
            Accepted(id=1),
            Pong(id=2, sent_ms=12.5),
        ]
        given = house.journaled(events.FeedbackGiven)
        assert [(g.participant, g.chunk, g.value, g.epoch) for g in given] == [(watcher.participant, 3, -1, 0)]
        watcher.receive(Feedback(id=3, chunk=10**9, value=1))
        assert isinstance(screen.messages[-1], Problem) and screen.messages[-1].code == "not_shown"
        assert len(house.journaled(events.FeedbackGiven)) == 1

    play(scene)


def test_full_servers_and_full_rooms_refuse_with_a_reason() -> None:
    async def scene(house: House) -> None:
        await house.join("a")
        await house.join("a")
        third = await house.rooms.join("a", Screen(), None, None)
        assert isinstance(third, api.Refused) and third.reason is api.RefusalReason.ROOM_FULL
        no_slot = await house.rooms.join("b", Screen(), None, None)
        assert isinstance(no_slot, api.Refused)
        assert (no_slot.reason, no_slot.retry_after_s) == (api.RefusalReason.NO_SLOT, 2.0)
        bad = await house.rooms.join("no such/room", Screen(), None, None)
        assert isinstance(bad, api.Refused) and bad.reason is api.RefusalReason.ROOM_NAME
        assert [view.room for view in house.rooms.views()] == ["a"]

    play(scene, door=lambda: FakeDoor(slots=1), spec=RoomsSpec(card="toy", seats=2))


def test_who_leaves_while_the_world_opens_holds_no_slot() -> None:
    async def scene(house: House) -> None:
        join = asyncio.ensure_future(house.rooms.join("lobby", Screen(), None, None))
        await asyncio.sleep(0.05)
        join.cancel()
        await asyncio.sleep(0.2)
        assert house.door.worlds == {} and house.rooms.views() == ()

    play(scene)


def test_who_leaves_and_comes_back_while_the_world_opens_waits_for_a_fresh_one() -> None:
    async def scene(house: House) -> None:
        gone = asyncio.ensure_future(house.rooms.join("lobby", Screen(), None, None))
        await asyncio.sleep(0.05)
        gone.cancel()
        await asyncio.sleep(0)
        _, screen = await house.join()
        await asyncio.sleep(0.5)
        assert len(house.door.worlds) == 1 and len(screen.frames) > 5
        assert [view.room for view in house.rooms.views()] == ["lobby"]

    play(scene)


def test_an_absent_spectator_makes_way_in_a_full_room() -> None:
    async def scene(house: House) -> None:
        await house.join()
        absent, _ = await house.join()
        absent.leave()
        newcomer, _ = await house.join()
        assert newcomer.role is Role.SPECTATOR
        back = await house.rooms.join("lobby", Screen(), absent.token, None)
        assert isinstance(back, api.Refused) and back.reason is api.RefusalReason.ROOM_FULL

    play(scene, spec=RoomsSpec(card="toy", seats=2))


def test_a_fault_is_shown_and_only_a_fatal_one_ends_the_world() -> None:
    async def scene(house: House) -> None:
        _, screen = await house.join()
        name, world = next(iter(house.door.worlds.items()))
        world.events(api.Fault(name, "nan", "chunk 3 is not a number", fatal=False))
        await beats(3)
        assert codes(screen) == ["nan"] and len(screen.frames) >= 2
        world.events(api.Fault(name, "device", "the device is gone", fatal=True))
        assert codes(screen) == ["nan", "device", "room_closed"]
        assert house.door.worlds == {} and house.rooms.views() == ()
        assert house.rooms.counters().participants == 0

    play(scene)


def test_taps_of_a_chunk_that_failed_show_in_the_next_one() -> None:
    async def scene(house: House) -> None:
        driver, _ = await house.join()
        await beats(3.1)
        name, world = next(iter(house.door.worlds.items()))
        edges = (KeyEdge(seq=1, key="KeyA", down=True), KeyEdge(seq=2, key="KeyA", down=False))
        driver.receive(Input(seq=2, held=(), edges=edges))
        await beats(0.9)
        begun = len(house.journaled(events.ChunkBegun))
        world.events(api.ChunkCancelled(name, begun - 1, 0))  # the engine gave the newest chunk up
        await beats(4)
        pressed = [e.conditions.controls[1] for e in house.journaled(events.ChunkBegun)]
        assert pressed[begun - 1 : begun + 2] == [1.0, 1.0, 0.0]

    play(scene)


class AskingTwice:
    """An engine that was interrupted while it waited, and asks for the same chunk once more."""

    def __init__(self, door: FakeDoor) -> None:
        self._door, self.post = door, door.post

    async def open(self, opening: api.Open, inbox: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        def twice(event: api.Event) -> None:
            for _ in range(2 if isinstance(event, api.ChunkDue) else 1):
                inbox(event)

        return await self._door.open(opening, twice)


def test_a_journal_replays_to_the_same_digests() -> None:
    async def scene(house: House) -> None:
        driver, _ = await house.join()
        await beats(5)
        driver.receive(Input(seq=1, held=("KeyW",)))
        driver.receive(Prompt(id=1, text="a snowy night", seconds=0.2))
        await beats(7.2)
        driver.receive(ResetWorld(id=2))
        await beats(6)
        journaled = house.journaled(events.JournalEvent)

        async def stream() -> AsyncIterator[events.JournalEvent]:
            for event in journaled:
                yield event

        script = await read(stream())
        assert [len(epoch.chunks) > 3 for epoch in script.epochs] == [True, True]
        for name, door in (("again", house.door), ("asked twice", AskingTwice(house.door))):
            replayed = await replay(door, script, name)
            assert (replayed.chunks, replayed.mismatches) == (sum(len(e.chunks) for e in script.epochs), ())

        first = script.epochs[0].chunks[0]
        forged = replace(script.epochs[0], chunks=(replace(first, digest="not it"), *script.epochs[0].chunks[1:]))
        replayed = await replay(house.door, replace(script, epochs=(forged,)), "forged")
        assert replayed.mismatches == (Mismatch(epoch=0, chunk=0, recorded="not it", replayed=first.digest),)

        other = replace(MadeBy.of(script.opened), weights="w1")
        elsewhere = replace(script, epochs=tuple(replace(each, made=other) for each in script.epochs))
        with pytest.raises(
            ReplayError, match="recorded with weights 'w1', 2 steps, int as usual; this server has weights 'w0"
        ):
            await replay(house.door, elsewhere, "elsewhere")

    play(scene)


def test_the_log_tells_of_rooms_and_roles_and_of_nobodys_words(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(house: House) -> None:
        driver, _ = await house.join(name="Ada")
        _, _ = await house.join(name="Grace")
        driver.receive(Prompt(id=1, text="a secret garden", transition=Transition.CUT))
        await beats(3)
        driver.leave()
        await house.join(token=driver.token)
        await house.rooms.close()

    with caplog.at_level("INFO", "worldroom.sessions"):
        play(scene)
    session = caplog.messages[0].rsplit(" ", 1)[1]
    assert caplog.messages == [
        f"room lobby opens: card toy, session {session}",
        "room lobby: a driver joins, 1 in",
        "room lobby: a spectator joins, 2 in",
        "room lobby: a driver leaves, 1 in",
        "room lobby: a driver is back, 2 in",
        "room lobby closes: shutdown",
        "stopped: 0 rooms are suspended, 1 room ends",
        "stopped: 0 rooms are suspended, 0 rooms end",
    ]
    assert not [word for word in ("Ada", "Grace", "secret") if word in caplog.text]


def test_the_log_tells_each_place_in_line_once(caplog: pytest.LogCaptureFixture) -> None:
    line = WaitLog()

    def stands(place: int) -> None:
        line.stands("b", api.Refused("s", api.RefusalReason.NO_COMPUTE, "full", place, 0.2))

    with caplog.at_level("INFO", "worldroom.sessions"):
        for place in (2, 2, 1, 1):
            stands(place)
        assert line.gone("b") and not line.gone("b")
        stands(1)
        stands(0)
    assert caplog.messages == [
        "room b waits in line, place 2: no_compute",
        "room b waits in line, place 1: no_compute",
        "room b waits in line, place 1: no_compute",
    ]


def test_what_was_suspended_is_one_line_however_many_there_are() -> None:
    assert stopped(["amber-fox"], 0) == "stopped: 1 room is suspended until the next start (amber-fox), 0 rooms end"
    many = stopped([f"r{number}" for number in range(20)], 1)
    assert (
        many == "stopped: 20 rooms are suspended until the next start (r0, r1, r2, r3, r4, r5, r6, r7, ..), 1 room ends"
    )


def test_case_46_a_prompt_that_is_too_long_for_the_card_comes_back_with_the_limit_and_is_no_fault() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        welcome = got(screen, Welcome)[0]
        assert welcome.prompt_chars == 500
        driver.receive(Prompt(id=1, text="\N{SNOWFLAKE}" * 500))
        driver.receive(Prompt(id=2, text="\N{SNOWFLAKE}" * 501))
        await beats(2)
        assert [accepted.id for accepted in got(screen, Accepted)] == [1]
        problem = got(screen, Problem)[0]
        assert (problem.code, problem.id) == ("prompt_too_long", 2)
        assert problem.detail == "this world takes 500 characters, these are 501"
        assert house.rooms.counters().faults == 0

    play(scene)
