"""Sessions as a server leaves them, without a server: a journal in files, films in a folder."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from worldroom.clock import SystemClock
from worldroom.engine.api import Conditions, Frame, PromptShare, Timings
from worldroom.film import CLOCK
from worldroom.sessions.audience import Audience, FrameInput, FrameInputs
from worldroom.sessions.erasing import Eraser
from worldroom.sessions.journal import events
from worldroom.sessions.journal.archive import Archive
from worldroom.sessions.journal.archiver import Archiver
from worldroom.sessions.journal.disk import DiskStore
from worldroom.sessions.journal.entry import Stamp, encode
from worldroom.sessions.journal.history import History
from worldroom.sessions.journal.store import StoredEntry
from worldroom.sessions.library.library import Library
from worldroom.sessions.messages import Transition
from worldroom.sessions.recording.recordings import Recordings
from worldroom.sessions.rooms.kept_files import KeptFiles
from worldroom.sessions.rooms.suspend_store import SuspendStore

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

    @property
    def library(self) -> Library:
        return Library(self.history, self.recordings)

    @property
    def eraser(self) -> Eraser:
        rooms = SuspendStore(KeptFiles(self.folder / "rooms", SystemClock()), keep_s=3600)
        return Eraser(self.store, self.archive, self.recordings, rooms, lambda session: 0)

    async def write(self, session: str, happened: Sequence[events.JournalEvent], at: float = 1000.0) -> None:
        """Journal and archive a session, an event a hundredth of a second."""
        await self.append(session, happened, at)
        await Archiver(SystemClock(), self.store, self.archive).archive_whole(session)

    async def append(self, session: str, happened: Sequence[events.JournalEvent], at: float = 1000.0) -> None:
        """Journal it only: all of it is hot."""
        rows = [
            StoredEntry(session, number, at + number / 100, encode(event, Stamp()))
            for number, event in enumerate(happened, 1)
        ]
        await self.store.append(rows)

    async def film(self, session: str, frames: Sequence[tuple[bytes, bool]], turn: int, card: str = "toy") -> None:
        """A film of that session: one frame a chunk, another prompt from chunk `turn` on."""
        packets = [shown(session, number, data, key, 1 + (number >= turn)) for number, (data, key) in enumerate(frames)]
        await self.filmed(session, packets, card)

    async def filmed(self, session: str, packets: Sequence[Frame], card: str = "toy") -> None:
        recordings, audience = self.recordings, Audience(lambda *_: None)
        recordings.start(audience, session, "lobby", card, 24, lambda: None)
        for packet in packets:
            audience.show(packet, FrameInputs(FrameInput(0, 0, packet.controls)))
        recordings.stop(session)
        await recordings.close()

    async def turned(self, session: str, frames: Sequence[tuple[bytes, bool]], at: float = 1000.0) -> None:
        """64 frames: a prompt at chunk 20, a like of chunk 30, and after chunk 39 back to 24 and on to 47 in another
        future."""
        first = happened(40, turn=20, liked=(30,))[:-1]
        again = [
            msgspec.structs.replace(event, conditions=msgspec.structs.replace(event.conditions, epoch=1))
            if isinstance(event, events.ChunkBegun)
            else msgspec.structs.replace(event, epoch=1)
            for event in happened(48, turn=20)
            if isinstance(event, events.ChunkBegun | events.ChunkCommitted) and event.chunk >= 24
        ]
        turned = events.WorldTurned(1, 24, 1, 0, "ann")
        await self.write(session, [*first, turned, *again, events.SessionClosed(reason="lease")], at)
        chunks = [*((0, n) for n in range(40)), *((1, n) for n in range(24, 48))]
        packets = [
            msgspec.structs.replace(shown(session, number, data, key, 1), epoch=epoch, chunk=chunk)
            for number, ((epoch, chunk), (data, key)) in enumerate(zip(chunks, frames, strict=True))
        ]
        await self.filmed(session, packets)

    @staticmethod
    def body(event: events.JournalEvent) -> bytes:
        return encode(event, Stamp())


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


def happened(
    chunks: int, turn: int = 2, card: str = "toy", liked: Sequence[int] = (), room: str = "lobby"
) -> list[events.JournalEvent]:
    """A session of so many chunks whose prompt changes at chunk `turn`."""
    out: list[events.JournalEvent] = [events.SessionOpened(room, card, "1", "w0", 2, "int", 7, 0)]
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


def onward(origin: events.Origin) -> list[events.JournalEvent]:
    """A session that goes on from that moment of another one, and ends at once."""
    opened = msgspec.structs.replace(happened(0)[0], origin=origin)
    return [opened, events.SessionClosed(reason="lease")]


def write_now(shelf: Shelf, session: str, what: Sequence[events.JournalEvent], at: float = 1000.0) -> None:
    asyncio.run(shelf.write(session, what, at))
