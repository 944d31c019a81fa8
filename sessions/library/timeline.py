"""What happened in a session, for who looks at a film of it: marks with their place in the film, futures side by side.

    journal   prompt.asked .. chunk.begun 41 .. preference.rated(41)      entries between two chunks belong to the next
    notes     frame of (epoch 0, chunk 41) at 1.7 s                       so a mark's place is that of its chunk's frame

Blocking where it reads a film's notes; otherwise pure.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ...film import CLOCK
from ..journal import events
from ..journal.entry import Entry, decode
from ..journal.store import StoredEntry
from ..recording.summary import FrameNote, notes_of

MARKS_MOST = 2000
UNMARKED = frozenset({"chunk", "input", "frame"})
"""Groups of events that are too many to be marks."""


class TimelineMark(msgspec.Struct, frozen=True):
    """Something that happened, `seconds` after the session was opened, before or in `chunk` of `epoch`.

    `at`: where in the film, in seconds; None = not in it.
    """

    seconds: float
    number: int
    type: str
    epoch: int
    branch: int = 0
    chunk: int = -1
    text: str = ""
    value: int = 0
    at: float | None = None


class FilmSpan(msgspec.Struct, frozen=True):
    """A future as a film shows it, in seconds of the film."""

    branch: int
    epoch: int
    at: float
    until: float


class FilmFork(msgspec.Struct, frozen=True):
    """Two futures of one moment, from the chunk on where they part."""

    chunk: int
    left: FilmSpan
    right: FilmSpan


class FilmTimeline(msgspec.Struct, frozen=True):
    """`seconds`: the film's length."""

    seconds: float
    marks: tuple[TimelineMark, ...]
    forks: tuple[FilmFork, ...]


@dataclass(slots=True)
class Happened:
    """Collects a session's entries, oldest first, a batch of them at a time."""

    opened: float
    types: dict[str, int] = field(default_factory=dict)
    marks: list[TimelineMark] = field(default_factory=list)
    turns: list[events.WorldTurned] = field(default_factory=list)
    _chunk: int = -1

    def take(self, rows: list[StoredEntry]) -> None:
        """Raises `JournalVersion`."""
        for row in rows:
            self._one(decode(row.session, row.number, row.at, row.body))

    def _one(self, entry: Entry) -> None:
        event = entry.event
        kind = type_of_event(event)
        self.types[kind] = self.types.get(kind, 0) + 1
        match event:
            case events.ChunkBegun():
                self._chunk = event.chunk
            case events.WorldTurned():
                self.turns.append(event)
            case _:
                pass
        if len(self.marks) < MARKS_MOST and kind.partition(".")[0] not in UNMARKED:
            self.marks.append(_mark(entry, kind, self.opened, self._chunk + 1))

    def in_film(self, film: Path) -> FilmTimeline:
        """Raises `OSError`, `msgspec.MsgspecError` where the film's notes cannot be read."""
        shown: dict[int, _Shown] = {}
        end = 0
        for note in notes_of(film):
            shown.setdefault(note.epoch, _Shown()).add(note)
            end = note.at
        marks = (msgspec.structs.replace(mark, at=_at(shown, mark.epoch, mark.chunk)) for mark in self.marks)
        forks = (self._fork(turn, shown) for turn in self.turns)
        return FilmTimeline(end / CLOCK, tuple(marks), tuple(fork for fork in forks if fork is not None))

    def _fork(self, turn: events.WorldTurned, shown: Mapping[int, "_Shown"]) -> FilmFork | None:
        """None where the film shows only one of the two."""
        branches = {each.epoch: each.branch for each in self.turns}
        left, right = (_at(shown, epoch, turn.chunk) for epoch in (turn.base, turn.epoch))
        if left is None or right is None or shown[turn.base].until / CLOCK <= left:
            return None
        return FilmFork(
            turn.chunk,
            FilmSpan(branches.get(turn.base, 0), turn.base, left, shown[turn.base].until / CLOCK),
            FilmSpan(turn.branch, turn.epoch, right, shown[turn.epoch].until / CLOCK),
        )


def moment_in(film: Path, seconds: float) -> tuple[int, int]:
    """Epoch and chunk that come after what a film shows then. Raises `OSError`, `msgspec.MsgspecError`."""
    epoch = chunk = 0
    for note in notes_of(film):
        if note.at > seconds * CLOCK and chunk:
            break
        epoch, chunk = note.epoch, note.chunk + 1
    return epoch, chunk


@dataclass(slots=True)
class _Shown:
    """An epoch in a film: its chunks, oldest first, when each begins, and when the last one was there; in ticks."""

    chunks: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    until: int = 0

    def add(self, note: FrameNote) -> None:
        self.until = note.at
        if not self.chunks or note.chunk > self.chunks[-1]:
            self.chunks.append(note.chunk)
            self.begun.append(note.at)


def type_of_event(event: events.JournalEvent) -> str:
    return str(type(event).__struct_config__.tag)


def _at(shown: Mapping[int, _Shown], epoch: int, chunk: int) -> float | None:
    """Seconds of the film where a chunk of that epoch is shown first, or the next one that is."""
    if (there := shown.get(epoch)) is None:
        return None
    place = bisect_left(there.chunks, chunk)
    return there.begun[place] / CLOCK if place < len(there.chunks) else None


def _mark(entry: Entry, kind: str, opened: float, chunk: int) -> TimelineMark:
    """`chunk`: the next one, for what names none itself."""
    event, text, value = entry.event, "", 0
    match event:
        case events.PromptAsked():
            text, value = event.text, event.number
        case events.SegmentStarted():
            chunk, value = event.chunk, event.prompt_version
        case events.FeedbackGiven():
            chunk, text, value = event.chunk, event.participant, event.value
        case events.WorldTurned():
            chunk, value = event.chunk, event.branch
        case events.PreferenceChosen():
            text, value = event.verdict, event.chosen
        case events.Faulted():
            text = event.code
        case events.StateMoved():
            text = event.after
        case events.RecordingMarked():
            text, value = event.name, int(event.running)
        case _:
            pass
    return TimelineMark(round(entry.at - opened, 3), entry.number, kind, entry.epoch, entry.branch, chunk, text, value)
