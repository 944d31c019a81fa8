"""Back to a moment and on in another future, on real servers that are killed and stopped before the choice: what is
shown, what is kept, what replays."""

import asyncio
from pathlib import Path

from worldroom.clients.bench.server import free_port
from worldroom.rtc.wire import Keep, ServerMessage, SideBySide, Transition
from worldroom.sessions.journal import events
from worldroom.tests.real_server import driving, journaled, ready, replayed, served, watched


async def told_of_choice(told: list[ServerMessage]) -> None:
    """By another server than the one that showed the futures."""
    while not any(isinstance(message, SideBySide) and message.earlier for message in told):  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def played(folder: Path) -> str:
    port = free_port()
    with served(folder, port) as (first, base):
        await ready(base)
        async with driving(base) as (room, told):
            assert room.welcome is not None
            before = (await watched(room, 48))[-1]
            await room.applied(await room.prompt("a red desert", Transition.CUT))
            await watched(room, 6)
            at = await room.applied(await room.rewind(1.0))
            after = [r for r in await watched(room, 30) if r.epoch > before.epoch]
            assert after[0].chunk == at < before.chunk + 12
            assert after[0].frame > before.frame and after[0].prompt_version == 1, "the words of that moment"
            first.kill()
            first.wait()
            told.clear()
            with served(folder, port) as (second, _):
                await told_of_choice(told)
                await room.applied(await room.choose(Keep.OTHER))
                chosen = [r for r in await watched(room, 30) if r.epoch > after[-1].epoch]
                assert chosen[0].prompt_version == 2 and chosen[0].chunk >= before.chunk
                await room.applied(await room.rewind(0.5))
                await watched(room, 12)
                second.terminate()
                second.wait()
            told.clear()
            with served(folder, port) as (third, _):
                await told_of_choice(told)
                await room.applied(await room.choose(Keep.TIE))
                await watched(room, 12)
                third.terminate()
                third.wait()
        return room.welcome.session


def test_two_futures_of_a_moment_are_compared_by_later_servers_and_every_branch_replays(tmp_path: Path) -> None:
    session = asyncio.run(played(tmp_path))
    happened = asyncio.run(journaled(tmp_path, session))
    turns = [event for event in happened if isinstance(event, events.WorldTurned)]
    assert [turn.branch for turn in turns] == [1, 0, 2] and [turn.epoch for turn in turns] == [1, 2, 3]
    assert [turn.base for turn in turns] == [0, 0, 2]
    first, second = [event for event in happened if isinstance(event, events.PreferenceChosen)]
    assert (first.verdict, first.chosen, second.verdict, second.chosen) == ("chosen", 0, "tie", 2)
    assert [branch.branch for branch in first.branches] == [0, 1] and first.chunk == turns[0].chunk
    assert first.branches[0].digests[0] != first.branches[1].digests[0], "another noise"
    assert all(len(branch.digests) > 5 for branch in (*first.branches, *second.branches))
    done = [event for event in happened if isinstance(event, events.ChunkCommitted)]
    assert first.context == next(event.digest for event in done if event.chunk == first.chunk - 1)
    code, report = replayed(session, tmp_path)
    assert (code, report["same"], report["epochs"], report["chunks"]) == (0, True, 4, len(done)), report
