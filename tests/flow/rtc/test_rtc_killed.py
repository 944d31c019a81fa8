"""The whole server, one without a Redis, is killed: the journal lacks nothing that was told, films play, it goes on."""

import asyncio
import re
from pathlib import Path

import av
from worldroom.clients.bench.server import free_port
from worldroom.sessions.journal import events
from worldroom.tests.real_server import driving, journaled, ready, served

PLAYED = 300
"""Chunks of the toy: more than the ten seconds after which a checkpoint is on the disk."""


async def played(folder: Path, log: Path) -> tuple[str, int, int]:
    """`log`: of the second server."""
    port = free_port()
    with served(folder, port, "--record", "all", "--journal=disk") as (process, base):
        await ready(base)
        async with driving(base) as (room, _):
            assert room.welcome is not None
            session = room.welcome.session
            told = await room.applied(await room.reset(seed=5))
            last = told
            async for frame in room.frames():
                if frame.receipt is not None:
                    last = frame.receipt.chunk
                if last > told + PLAYED:
                    break
            process.kill()
            process.wait()
            with served(folder, port, "--record", "all", "--journal=disk", log=log) as (again, _):
                async for frame in room.frames():
                    if frame.receipt is not None and frame.receipt.chunk > last + 5:
                        assert room.welcome.session == session and room.welcome.resumed
                        assert frame.receipt.epoch == 1
                        break
                again.terminate()
                again.wait()
    return session, told, last


def test_a_killed_server_goes_on_where_it_was(tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "log"
    session, told, last = asyncio.run(played(folder, log))
    happened = asyncio.run(journaled(folder, session))
    done = [(event.epoch, event.chunk) for event in happened if isinstance(event, events.ChunkCommitted)]
    chunks = [chunk for _, chunk in done]
    assert chunks == list(range(len(chunks))), "none lost, none doubled"
    assert chunks[-1] > last >= told
    films = [*(folder / "recordings").rglob("*.mp4")]
    assert len(films) == 2, "one of each server"
    for path in films:
        with av.open(str(path)) as film:
            assert sum(1 for _ in film.decode(video=0)) > 0
    resumed = re.search(
        rf"session {session}\S* goes on at chunk (\d+), made again from chunk (\d+) on", log.read_text()
    )
    assert resumed is not None, log.read_text()
    chunk, since = int(resumed[1]), int(resumed[2])
    assert not (folder / "redis").exists(), "nor is one made by who reads"
    assert told < since <= chunk and last <= chunk, "from its checkpoint on disk, not from its opening"
