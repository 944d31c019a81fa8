"""Rooms on the real engine with the toy card on a fake device: a key, words, a reset, a cut, a fault, and a replay."""

import asyncio

from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.sessions.journal import events
from worldroom.sessions.journal.replay import read, replay
from worldroom.sessions.messages import (
    Applied,
    Input,
    KeyEdge,
    Problem,
    Prompt,
    ResetWorld,
    ResumeWorld,
    StateChanged,
    WorldState,
)
from worldroom.sessions.rooms.participant import Participant
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_door import Screen
from worldroom.tests.fake_engine import BadSteps
from worldroom.tests.real_rooms import Server, stream


def pressed(screen: Screen) -> list[bool]:
    return [any(frame.controls) for frame in screen.frames]


def key_of(server: Server) -> str:
    return server.engine.cards()[0].controls[0].keys[0]


def test_a_key_words_and_a_reset_on_the_real_engine_replay_to_the_same_digests() -> None:
    async def main() -> None:
        server = Server()
        await server.start()
        driver, screen = await server.join()
        key = key_of(server)
        await asyncio.sleep(0.5)
        driver.receive(Input(seq=1, held=(key,), edges=(KeyEdge(seq=1, key=key, down=True),)))
        await asyncio.sleep(0.25)
        driver.receive(Input(seq=2, held=(), edges=(KeyEdge(seq=2, key=key, down=False),)))
        driver.receive(Prompt(id=1, text="a red desert", seconds=0.25))
        await asyncio.sleep(0.5)
        driver.receive(ResetWorld(id=2))
        shown = len(screen.frames)
        await asyncio.sleep(0.5)
        driver.receive(Prompt(id=3, text="a calm blue sea", seconds=0.0))
        await asyncio.sleep(0.5)

        assert {frame.epoch for frame in screen.frames[shown:]} == {1}
        assert [m.id for m in screen.messages if isinstance(m, Applied)] == [1, 2, 3]
        assert [m for m in screen.messages if isinstance(m, Problem)] == []
        assert any(pressed(screen)) and not pressed(screen)[0] and not pressed(screen)[-1]
        first = pressed(screen).index(True)
        assert 0 < screen.given[first].hold_us < 2_000_000 / 24

        journaled = server.events(screen)
        driver.leave()

        script = await read(stream(journaled))
        assert [epoch.epoch for epoch in script.epochs] == [0, 1]
        replayed = await replay(server.engine, script, "again")
        assert replayed.chunks > 30
        assert replayed.mismatches == ()
        await server.stop()

    run(main())


def test_a_cut_of_five_seconds_keeps_the_world_and_its_chunks() -> None:
    async def main() -> None:
        server = Server()
        await server.start()
        driver, screen = await server.join()
        await asyncio.sleep(1.0)
        driver.leave()
        await asyncio.sleep(5.0)
        assert server.rooms.views()[0].state is WorldState.HELD
        _, back = await server.join(driver.token)
        await asyncio.sleep(1.0)
        done = [event.chunk for event in server.events(screen) if isinstance(event, events.ChunkCommitted)]
        assert done == list(range(len(done)))
        assert 40 <= len(done) <= 52, "two seconds at 24 fps; nothing is made up for the five that were held"
        assert back.frames[0].chunk > screen.frames[-1].chunk
        await server.stop()

    run(main())


def test_a_tap_of_a_chunk_that_failed_shows_in_its_second_try() -> None:
    async def main() -> None:
        server = Server()
        await server.start()
        driver, screen = await server.join()
        await asyncio.sleep(0.5)
        failures = 0

        def fail_once(batch: Batch) -> None:
            nonlocal failures
            if failures == 0 and batch.kind is StepKind.DENOISE:
                failures += 1
                raise RuntimeError("one bad step")

        key = key_of(server)
        edges = (KeyEdge(seq=1, key=key, down=True), KeyEdge(seq=2, key=key, down=False))
        driver.receive(Input(seq=2, held=(), edges=edges))
        server.device.fail = fail_once
        await asyncio.sleep(0.5)
        assert failures == 1
        assert sum(pressed(screen)) == 1
        assert [m.code for m in screen.messages if isinstance(m, Problem)] == ["step_failed"]
        await server.stop()

    run(main())


def test_bad_chunks_in_a_row_ask_who_drives_and_the_world_goes_on_from_its_last_chunk() -> None:
    async def main() -> None:
        server = Server()
        await server.start()
        driver, screen = await server.join()
        await asyncio.sleep(0.5)

        def states() -> list[WorldState]:
            return [m.state for m in screen.messages if isinstance(m, StateChanged)]

        server.device.fail = bad = BadSteps(StepKind.DENOISE, 2)
        await asyncio.sleep(0.5)
        assert bad.left == 0 and WorldState.PAUSED not in states(), "two bad chunks are tried again"
        bad.left = 100
        await asyncio.sleep(2.0)
        assert states()[-1] is WorldState.PAUSED and bad.left == 96, "then the device is left to others"
        assert [m.code for m in screen.messages if isinstance(m, Problem)][-1] == "step_failed"
        driver.receive(ResumeWorld(id=1))
        await asyncio.sleep(0.5)
        assert states()[-1] is WorldState.PAUSED and bad.left == 92, "it is tried again, in vain"
        bad.left, shown = 0, len(screen.frames)
        driver.receive(ResumeWorld(id=2))
        await asyncio.sleep(0.5)
        assert len(screen.frames) > shown + 5
        done = [event.chunk for event in server.events(screen) if isinstance(event, events.ChunkCommitted)]
        assert done == list(range(len(done))), "the same world, and no chunk of it is lost"
        await server.stop()

    run(main())


def test_a_world_that_stands_still_is_left_like_any_other_and_comes_back_paused() -> None:
    async def main() -> None:
        server = Server()
        await server.start()
        driver, _ = await server.join()
        await asyncio.sleep(0.5)

        def fail(batch: Batch) -> None:
            raise RuntimeError("every step fails")

        server.device.fail = fail
        await asyncio.sleep(2.0)
        driver.leave()
        assert server.rooms.views()[0].state is WorldState.HELD
        server.device.fail = lambda batch: None
        back, again = await server.join(driver.token)
        await asyncio.sleep(0.5)
        assert server.rooms.views()[0].state is WorldState.PAUSED and not again.frames
        back.receive(ResumeWorld(id=1))
        await asyncio.sleep(0.5)
        assert len(again.frames) > 5
        await server.stop()

    run(main())


def test_a_room_in_line_opens_the_moment_another_one_ends_and_keeps_its_place_between_attempts() -> None:
    async def main() -> None:
        server = Server()
        await server.start(spec=EngineSpec(slots=1))
        await server.join()
        now = asyncio.get_running_loop().time

        async def ask(room: str) -> Participant | api.Refused:
            return await server.rooms.join(room, Screen(), None, None)

        places = [await ask(room) for room in ("a", "b")]
        assert [place.queue_place for place in places if isinstance(place, api.Refused)] == [1, 2]
        await asyncio.sleep(3)
        waiting = asyncio.create_task(ask("a"))
        await asyncio.sleep(1)
        late = await ask("late")
        assert isinstance(late, api.Refused) and late.figures is not None
        assert (late.reason, late.queue_place, late.figures.limit) == (api.RefusalReason.NO_SLOT, 3, 1)
        server.engine.post(api.Close(server.rooms.views()[0].session))
        freed = now()
        assert isinstance(await waiting, Participant)
        assert now() - freed < 0.05
        gone = asyncio.create_task(ask("late"))
        await asyncio.sleep(0.5)
        assert server.engine.capacity()[0].waiting == 2
        gone.cancel()
        await asyncio.sleep(0.1)
        assert server.engine.capacity()[0].waiting == 1, "nobody waits for that room any more"
        await server.stop()

    run(main())
