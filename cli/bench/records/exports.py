"""Exports of many sessions: sessions a second and whether memory grows with their number.

The sessions are synthetic: 240 chunks each, one in ten with a film of 240 frames.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import av
import msgspec
import numpy as np

from ....clock import SystemClock
from ....film import CLOCK
from .amounts import Amounts, resident_mib

if TYPE_CHECKING:
    from ....sessions.export.episodes import Episode
    from ....sessions.journal.archive import Archive
    from ....sessions.journal.events import JournalEvent
    from ....sessions.recording.recordings import Recordings

CHUNKS = 240
FILMED_EVERY = 10


class BenchedExport(msgspec.Struct, frozen=True):
    """`rss_tenth_mib`, `rss_end_mib`: of this process after a tenth of the sessions, and after all."""

    format: str
    sessions: int
    per_s: float
    rows: int
    bytes: int
    rss_tenth_mib: float
    rss_end_mib: float


async def measure_exports(amounts: Amounts) -> tuple[BenchedExport, ...]:
    from ....sessions.export.exporter import ExportFormat
    from ....sessions.journal.archive import Archive
    from ....sessions.recording.recordings import Recordings

    with tempfile.TemporaryDirectory(prefix="worldroom-bench-") as folder:
        archive = Archive(Path(folder) / "archive")
        recordings = Recordings(Path(folder) / "recordings", SystemClock())
        names = [f"{number:016x}" for number in range(amounts.sessions)]
        await asyncio.to_thread(_fill, archive, names)
        await _film(recordings, names[::FILMED_EVERY])
        return tuple(
            [
                await _exported(kind, Path(folder), archive, recordings, names)
                for kind in (ExportFormat.PARQUET, ExportFormat.PAIRS, ExportFormat.WEBDATASET, ExportFormat.LEROBOT)
            ]
        )


async def _exported(
    kind: str, folder: Path, archive: "Archive", recordings: "Recordings", names: list[str]
) -> BenchedExport:
    from ....sessions.export.episodes import episodes
    from ....sessions.export.exporter import ExportFormat, ExportSpec, export
    from ....sessions.journal.disk import DiskStore
    from ....sessions.journal.history import History

    history = History(DiskStore(folder / "journal"), archive)
    rss = [0.0]

    async def watched() -> "AsyncIterator[Episode]":
        count = 0
        async for episode in episodes(history, recordings, names):
            count += 1
            if count == max(1, len(names) // 10):
                rss[0] = resident_mib()
            yield episode

    began = time.perf_counter()
    report = await export(watched(), ExportSpec(ExportFormat(kind), folder / kind, ("go", "left")))
    took = time.perf_counter() - began
    size = sum(path.stat().st_size for path in (folder / kind).rglob("*") if path.is_file())
    return BenchedExport(kind, len(names), round(len(names) / took, 1), report.rows, size, rss[0], resident_mib())


def _fill(archive: "Archive", names: list[str]) -> None:
    from ....sessions.journal.archive import VERSION, Index
    from ....sessions.journal.entry import Stamp, encode
    from ....sessions.journal.store import StoredEntry

    for number, name in enumerate(names):
        opened = 1_796_000_000.0 + 60 * number
        rows = [
            StoredEntry(name, place, opened + place / 48, encode(event, Stamp()))
            for place, event in enumerate(_happened(number), 1)
        ]
        archive.add(Index(VERSION, name, "lobby", "toy", opened), rows, True)


def _happened(number: int) -> "list[JournalEvent]":
    from ....engine.api import Conditions, PromptShare, Timings
    from ....sessions.journal import events
    from ....sessions.messages import Transition

    happened: list[JournalEvent] = [events.SessionOpened("lobby", "toy", "1", "w0", 2, "int", number, 0)]
    happened += [events.PromptAsked("ann", 1, "a town", Transition.CUT, 0), events.PromptReady(1, "key1")]
    for chunk in range(CHUNKS):
        conditions = Conditions(0, (float(chunk % 2), 0.0), (0.0, 0.0), (PromptShare("key1", 1.0),), 1, chunk)
        happened.append(events.ChunkBegun(chunk, conditions))
        happened.append(events.ChunkCommitted(chunk, 0, f"{number:016x}{chunk:016x}", 0, Timings(1, 2, 3, 4)))
        if chunk % 60 == 30:
            happened.append(events.FeedbackGiven("ann", chunk, 1, 0, chunk))
    if number % 2:
        branches = tuple(events.BranchRecord(branch, number, 100, (f"{branch:032x}",)) for branch in (1, 2))
        happened.append(events.PreferenceChosen("ann", 100, "c" * 32, "w0", branches, 1, events.Verdict.CHOSEN, 2.0))
    return [*happened, events.SessionClosed(reason="lease")]


async def _film(recordings: "Recordings", names: list[str]) -> None:
    """The same small film for each."""
    from ....engine.api import Frame, Timings
    from ....sessions.audience import Audience, FrameInput, FrameInputs

    packets = await asyncio.to_thread(_encoded)
    for name in names:
        audience = Audience(lambda *_: None)
        recordings.start(audience, name, "lobby", "toy", 24, lambda: None)
        for number, (data, key) in enumerate(packets):
            at, timings = number * CLOCK // 24, Timings(1, 2, 3, 4)
            controls = (float(number % 2), 0.0)
            frame = Frame(name, number, number, 0, at, key, data, number, 1, controls, 0.0, timings)
            audience.show(frame, FrameInputs(FrameInput(number, 0, controls)))
        recordings.stop(name)
    await recordings.close()


def _encoded() -> list[tuple[bytes, bool]]:
    codec = av.CodecContext.create("libx264", "w")
    codec.width, codec.height, codec.pix_fmt, codec.framerate = 160, 96, "yuv420p", Fraction(24)
    codec.options = {"preset": "ultrafast", "tune": "zerolatency", "x264-params": "annexb=1:repeat-headers=1:keyint=48"}
    packets = []
    for number in range(CHUNKS):
        picture = av.VideoFrame.from_ndarray(np.full((96, 160, 3), number, np.uint8), format="rgb24")
        picture = picture.reformat(format="yuv420p")
        picture.pts = number
        packets += [(bytes(packet), packet.is_keyframe) for packet in codec.encode(picture)]
    return packets
