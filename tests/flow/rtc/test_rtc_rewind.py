"""Back to a moment and on in another future, on a real server: what is shown, what is kept, what replays."""

import asyncio
from pathlib import Path

from worldroom.rtc.wire import Keep, Transition
from worldroom.sessions.journal import events
from worldroom.tests.real_server import driving, journaled, ready, replayed, served, watched


async def played(folder: Path) -> str:
    with served(folder) as (process, base):
        await ready(base)
        async with driving(base) as (room, _):
            assert room.welcome is not None
            before = (await watched(room, 48))[-1]
            await room.applied(await room.prompt("a red desert", Transition.CUT))
            await watched(room, 6)
            at = await room.applied(await room.rewind(1.0))
            after = [r for r in await watched(room, 30) if r.epoch > before.epoch]
            assert after[0].chunk == at < before.chunk + 12
            assert after[0].frame > before.frame and after[0].prompt_version == 1, "the words of that moment"
            await room.applied(await room.choose(Keep.OTHER))
            chosen = [r for r in await watched(room, 30) if r.epoch > after[-1].epoch]
            assert chosen[0].prompt_version == 2 and chosen[0].chunk >= before.chunk
            await room.applied(await room.rewind(0.5))
            await watched(room, 12)
            await room.applied(await room.choose(Keep.TIE))
            await watched(room, 12)
        process.terminate()
        process.wait()
        return room.welcome.session


def test_two_futures_of_a_moment_are_compared_and_every_branch_replays(tmp_path: Path) -> None:
    session = asyncio.run(played(tmp_path))
    happened = asyncio.run(journaled(tmp_path, session))
    turns = [event for event in happened if isinstance(event, events.WorldTurned)]
    assert [turn.branch for turn in turns] == [1, 0, 2] and [turn.epoch for turn in turns] == [1, 2, 3]
    assert [turn.base for turn in turns] == [0, 0, 2]
    first, second = [event for event in happened if isinstance(event, events.PreferenceChosen)]
    assert (first.verdict, first.chosen, second.verdict, second.chosen) == ("chosen", 0, "tie", 2)
    assert [branch.branch for branch in first.branches] == [0, 1] and first.chunk == turns[0].chunk
    assert first.branches[0].digests[0] != first.branches[1].digests[0], "another noise"
    done = [event for event in happened if isinstance(event, events.ChunkCommitted)]
    assert first.context == next(event.digest for event in done if event.chunk == first.chunk - 1)
    code, report = replayed(session, tmp_path)
    assert (code, report["same"], report["epochs"], report["chunks"]) == (0, True, 4, len(done)), report
