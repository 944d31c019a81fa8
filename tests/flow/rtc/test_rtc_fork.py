"""Futures side by side on a real server: one stream, each by its own noise, words or keys; its worker is killed, then
the server, and the choice is still open. Every one replays."""

import asyncio
import os
import signal
from pathlib import Path

from worldroom.clients.bench.server import free_port
from worldroom.rtc.wire import Keep, Receipt, SideBySide, Way
from worldroom.sessions.journal import events
from worldroom.tests.real_server import driving, journaled, ready, replayed, served, watched


def workers(server: int) -> list[int]:
    """Processes below the server's."""
    found = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return [int(pid) for pid in found]


async def played(folder: Path) -> tuple[str, list[Receipt]]:
    port = free_port()
    with served(folder, port) as (process, base):
        await ready(base)
        seen: list[Receipt] = []
        async with driving(base) as (room, told):
            assert room.welcome is not None
            at = await room.applied(await room.fork(Way(), Way(prompt="a red desert"), Way(held=("ArrowRight",))))
            seen += await watched(room, 30)
            side = next(message for message in told if isinstance(message, SideBySide))
            assert side.chunk == at and [view.branch for view in side.places] == [0, 1, 2, 3]
            assert [view.prompt for view in side.places] == ["", "", "a red desert", ""]
            await room.applied(await room.choose(Keep.THIS, 2))
            seen += await watched(room, 20)
            await room.applied(await room.reset())
            seen += await watched(room, 20)
            await room.applied(await room.fork())
            seen += await watched(room, 12)
            for pid in workers(process.pid):
                os.kill(pid, signal.SIGKILL)
            seen += await watched(room, 40)
            process.kill()
            process.wait()
            told.clear()
            with served(folder, port) as (again, _):
                while not any(isinstance(message, SideBySide) and message.places for message in told):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                seen += await watched(room, 24)
                await room.applied(await room.choose(Keep.OTHER))
                seen += await watched(room, 12)
                await room.applied(await room.regenerate())
                seen += await watched(room, 8)
                again.terminate()
                again.wait()
        return room.welcome.session, seen


def test_futures_side_by_side_are_one_stream_and_every_one_replays(tmp_path: Path) -> None:
    session, seen = asyncio.run(played(tmp_path))
    numbers = [receipt.frame for receipt in seen]
    assert numbers == sorted(set(numbers)), "frames' numbers never go back"
    assert seen[-1].epoch > seen[0].epoch
    happened = asyncio.run(journaled(tmp_path, session))
    turns = [event for event in happened if isinstance(event, events.WorldTurned)]
    assert [(turn.branch, turn.noise, turn.beside) for turn in turns[:3]] == [(1, -1, True), (2, 0, True), (3, 0, True)]
    first, second = [event for event in happened if isinstance(event, events.PreferenceChosen)][:2]
    assert first.chosen == 2 and [branch.branch for branch in first.branches] == [0, 1, 2, 3]
    assert first.chunk == turns[0].chunk and first.seconds > 0
    assert len({branch.digests[0] for branch in first.branches}) == 4
    assert [branch.prompt_version for branch in first.branches] == [1, 1, 2, 1]
    assert set(first.branches[3].controls) == {tuple(first.branches[3].controls[0])}
    assert second.chosen == 4 and [branch.branch for branch in second.branches] == [2, 4]
    assert all(len(branch.digests) > 40 for branch in second.branches), "before the kill and after it"
    code, report = replayed(session, tmp_path)
    done = [event for event in happened if isinstance(event, events.ChunkCommitted)]
    assert (code, report["same"], report["chunks"]) == (0, True, len(done)), report
