"""kill -9 of the whole server, again and again, at random moments: nothing that was told is lost or doubled, the world
goes on in the same session, what was shown before can be liked, films play to their last fragment."""

import asyncio
import random
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import av
import pytest
from worldroom.cli.journal_place import JournalPlace, reading
from worldroom.clients.bench.server import free_port
from worldroom.clients.python.room import RoomClient, join
from worldroom.clock import SystemClock
from worldroom.rtc.wire import Receipt, Receipts, ServerMessage
from worldroom.sessions.journal import events
from worldroom.sessions.journal.entry import Entry
from worldroom.sessions.recording.recordings import Recordings
from worldroom.sessions.recording.summary import notes_of
from worldroom.tests.real_server import served

PATIENCE_S = 240.0
"""A start on a machine that is busy takes a minute."""
MOST_S = 1.5
"""From the first frames after a start to the kill, at most; now and then the next server is killed as it starts."""


@dataclass
class Told:
    """What the person was told: sessions they were in, the last chunk they saw, likes that were accepted."""

    sessions: list[str] = field(default_factory=list)
    chunk: int = -1
    frames: int = 0
    likes: list[int] = field(default_factory=list)

    def hear(self, message: ServerMessage) -> None:
        for receipt in message.items if isinstance(message, Receipts) else (message,):
            if isinstance(receipt, Receipt):
                self.chunk, self.frames = max(self.chunk, receipt.chunk), self.frames + 1


class Server:
    """One after the other, on the same folder and port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.start()

    def start(self) -> None:
        self._stack = ExitStack()
        options = ("--record", "all", "--option", "fps=12", "--slots", "1")
        self.process, self.base = self._stack.enter_context(served(self.folder, self.port, *options))

    def kill(self) -> None:
        self._stack.close()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


async def played(folder: Path, kills: int, seed: int) -> Told:
    dice, told, server = random.Random(seed), Told(), Server(folder)
    try:
        async with join(f"{server.base}/r/kills", loopback=True, decode=False, patience=PATIENCE_S) as room:
            room.on_message = told.hear
            room.press("ArrowLeft")
            for _ in range(kills):
                before = told.chunk
                await shown(room, told, 4)
                for chunk in (told.chunk, max(before, 0)):  # this server's, and what the one before it had shown
                    told.likes.append(chunk)
                    await room.like(chunk, 1)
                await asyncio.sleep(dice.uniform(0.0, MOST_S))
                server.kill()
                server.start()
                if dice.random() < 0.2:
                    await asyncio.sleep(dice.uniform(0.2, 2.0))
                    server.kill()
                    server.start()
            await shown(room, told, 12)
        await asyncio.sleep(0.5)
        server.stop()
    finally:
        server.kill()
    return told


async def shown(room: RoomClient, told: Told, frames: int) -> None:
    """So many frames more of the world, and the session they are of."""
    enough = told.frames + frames
    async with asyncio.timeout(PATIENCE_S):
        while told.frames < enough:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert room.welcome is not None
    if room.welcome.session not in told.sessions:
        told.sessions.append(room.welcome.session)


async def written(folder: Path, session: str) -> list[Entry]:
    async with reading(JournalPlace(folder)) as history:
        found = [entry async for entry in history.read(session)]
    assert all(isinstance(entry, Entry) for entry in found), "nothing is missing in between"
    return [entry for entry in found if isinstance(entry, Entry)]


def check_films(folder: Path) -> int:
    """Every film decodes to its last frame, and has as many as were noted; the frames of all."""
    count = 0
    for path in folder.rglob("*.mp4"):
        with av.open(str(path)) as film:
            frames = sum(1 for _ in film.decode(video=0))
        assert frames == sum(1 for _ in notes_of(path)), path
        count += frames
    return count


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_whenever_the_server_is_killed_nothing_that_was_told_is_lost(tmp_path: Path, kills: int) -> None:
    told = asyncio.run(played(tmp_path, kills, seed=kills))
    assert len(told.sessions) == 1, "the world goes on"
    entries = asyncio.run(written(tmp_path, told.sessions[0]))
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    chunks = [entry.event.chunk for entry in entries if isinstance(entry.event, events.ChunkCommitted)]
    assert chunks == list(range(len(chunks))), "none lost, none doubled"
    assert len(chunks) > told.chunk
    liked = [entry.event.chunk for entry in entries if isinstance(entry.event, events.FeedbackGiven)]
    assert liked == told.likes
    Recordings(tmp_path / "recordings", SystemClock()).salvaged()
    assert [*(tmp_path / "recordings").rglob("*.part")] == []
    assert check_films(tmp_path / "recordings") >= told.frames // 2
