"""A server is stopped and started again on the same data: whoever comes back finds the same world, place and wheel."""

import asyncio
import signal
from pathlib import Path

import pytest
from worldroom.clients.python.room import RoomClient
from worldroom.rtc.wire import Keep, Transition, Welcome
from worldroom.sessions.journal import events
from worldroom.tests.real_server import PATIENCE_S, driving, journaled, ready, replayed, served, watched


async def frames(room: RoomClient, count: int) -> list[int]:
    """The chunks of the next frames."""
    return [receipt.chunk for receipt in await watched(room, count)]


async def test_the_world_goes_on_after_a_restart(tmp_path: Path) -> None:
    welcomes: list[Welcome] = []
    with served(tmp_path) as (process, base):
        await ready(base)
        async with driving(base) as (room, _):
            await room.applied(await room.prompt("a red desert", Transition.CUT))
            await room.applied(await room.reset(seed=77))
            last = (await frames(room, 12))[-1]
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0
            before = room.welcome
            assert before is not None
            port = int(base.rpartition(":")[2])
            with served(tmp_path, port) as (again, _):
                room.on_message = lambda message: welcomes.append(message) if isinstance(message, Welcome) else None
                chunks = await frames(room, 8)
                while not welcomes or chunks[-1] < last:
                    chunks += await frames(room, 4)
                welcome, session = welcomes[-1], before.session
                assert (welcome.session, welcome.resumed, welcome.role) == (session, True, "driver")
                assert (welcome.participant, welcome.prompt, welcome.epoch) == (before.participant, "a red desert", 1)
                assert welcome.chunk > last - 12
                room.press("ArrowUp")
                await room.applied(await room.prompt("a green nebula", Transition.BLEND, 0.2))
                await frames(room, 8)
                again.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(again.wait, PATIENCE_S) == 0
    written = await journaled(tmp_path, session)
    assert sum(isinstance(event, events.SessionOpened) for event in written) == 1
    done = [event for event in written if isinstance(event, events.ChunkCommitted) and event.epoch == 1]
    assert [event.chunk for event in done] == [*range(done[0].chunk, done[0].chunk + len(done))]
    _, played = await asyncio.to_thread(replayed, session, tmp_path)
    assert (played["same"], played["chunks"] >= len(done)) == (True, True), played


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
async def test_a_mix_that_waits_for_its_chunk_outlives_a_rewind_and_its_server(end: int, tmp_path: Path) -> None:
    with served(tmp_path) as (process, base):
        await ready(base)
        async with driving(base) as (room, _):
            await room.applied(await room.prompt("a red desert", Transition.CUT))
            due = (await frames(room, 24))[-1] + 90
            planned = room.prompt("violet dusk", others={"a green nebula": 3.0}, at=due, over=4)
            _, back = await asyncio.gather(planned, room.rewind(0.5))  # the world turns before the texts are encoded
            await room.applied(back)
            await room.applied(await room.choose(Keep.THIS))
            while (await frames(room, 4))[-1] < due - 30:
                pass  # long enough to be written down
            process.send_signal(end)
            await asyncio.to_thread(process.wait, PATIENCE_S)
            assert room.welcome is not None
            session = room.welcome.session
            with served(tmp_path, int(base.rpartition(":")[2])) as (again, _):
                while (await frames(room, 4))[-1] < due + 6:
                    pass
                assert room.welcome.prompt == "a red desert", "it still waited"
                again.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(again.wait, PATIENCE_S) == 0
    begun = [event for event in await journaled(tmp_path, session) if isinstance(event, events.ChunkBegun)]
    weights = [[share.weight for share in event.conditions.prompts] for event in begun if event.chunk >= due]
    assert weights[0] == [0.75, 0.0625, 0.1875] and weights[3] == [0.25, 0.75]
    assert all(len(event.conditions.prompts) == 1 for event in begun if event.chunk < due)
    _, played = await asyncio.to_thread(replayed, session, tmp_path)
    assert played["same"] is True, played
