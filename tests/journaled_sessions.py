"""Sessions as a server leaves them, without a server: a journal in files, films in a folder."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from worldroom.clock import SystemClock
from worldroom.engine.api import Conditions, Frame, PromptShare, Timings
from worldroom.film import CLOCK
from worldroom.sessions.audience import Audience
from worldroom.sessions.journal import events
from worldroom.sessions.journal.archive import Archive
from worldroom.sessions.journal.archiver import Archiver
from worldroom.sessions.journal.disk import DiskStore
from worldroom.sessions.journal.entry import Stamp, encode
from worldroom.sessions.journal.history import History
from worldroom.sessions.journal.store import StoredEntry
from worldroom.sessions.messages import Transition
from worldroom.sessions.recording.recordings import Recordings

TIMINGS = Timings(1, 2, 3, 4)


@dataclass
class Shelf:
    """A data folder."""

    folder: Path

    @property
    def store(self) -> DiskStore:
        return DiskStore(self.folder / "journal")

    @property
    def archive(self) -> Archive:
        return Archive(self.folder / "archive")

    @property
    def history(self) -> History:
        return History(self.store, self.archive)

    @property
    def recordings(self) -> Recordings:
        return Recordings(self.folder / "recordings", SystemClock())

    async def write(self, session: str, happened: Sequence[events.JournalEvent], at: float = 1000.0) -> None:
        """Journal and archive a session, an event a hundredth of a second."""
        rows = [
            StoredEntry(session, number, at + number / 100, encode(event, Stamp()))
            for number, event in enumerate(happened, 1)
        ]
        await self.store.append(rows)
        await Archiver(SystemClock(), self.store, self.archive).archive_whole(session)

    async def film(self, session: str, frames: Sequence[tuple[bytes, bool]], turn: int, card: str = "toy") -> None:
        """A film of that session: one frame a chunk, another prompt from chunk `turn` on."""
        recordings, audience = self.recordings, Audience(lambda *_: None)
        recordings.start(audience, session, "lobby", card, 24, lambda: None)
        for number, (data, key) in enumerate(frames):
            audience.show(shown(session, number, data, key, 1 + (number >= turn)), 0)
        recordings.stop(session)
        await recordings.close()


def shown(session: str, number: int, data: bytes, key: bool, prompt: int) -> Frame:
    return Frame(
        session=session,
        frame=number,
        chunk=number,
        epoch=0,
        pts=number * CLOCK // 24,
        key=key,
        data=data,
        input_seq=number,
        prompt_version=prompt,
        controls=(float(number % 2), 0.0),
        begun=0.0,
        timings=TIMINGS,
    )


def happened(chunks: int, turn: int = 2, card: str = "toy", liked: Sequence[int] = ()) -> list[events.JournalEvent]:
    """A session of so many chunks whose prompt changes at chunk `turn`."""
    out: list[events.JournalEvent] = [events.SessionOpened("lobby", card, "1", "w0", 2, "int", 7, 0)]
    for version, text in ((1, "a town"), (2, "a town by night")):
        out.append(events.PromptAsked("ann", version, text, Transition.CUT, 0))
        out.append(events.PromptReady(number=version, key=f"key{version}"))
    for chunk in range(chunks):
        version = 1 + (chunk >= turn)
        conditions = Conditions(
            0, (float(chunk % 2), 0.0), (0.0, 0.0), (PromptShare(f"key{version}", 1.0),), version, chunk
        )
        out.append(events.ChunkBegun(chunk, conditions))
        out.append(events.ChunkCommitted(chunk, 0, f"{chunk:032x}", 0, TIMINGS))
        if chunk in liked:
            out.append(events.FeedbackGiven("ann", chunk, 1, 0, chunk))
    out.append(events.SessionClosed(reason="lease"))
    return out


def write_now(shelf: Shelf, session: str, what: Sequence[events.JournalEvent], at: float = 1000.0) -> None:
    asyncio.run(shelf.write(session, what, at))
