"""The sessions of a server as a library: pages of them, each with its films, its likes and its timeline.

Sessions that have ended do not change, so what was read of them is kept.
"""

import asyncio
from collections.abc import Mapping

import msgspec

from .journal import events
from .journal.archive import ArchiveError
from .journal.entry import Entry, JournalVersion
from .journal.history import History, NoSession, SessionSummary
from .journal.store import StoreError
from .recording.recordings import Recordings
from .recording.summary import RecordingInfo

KEPT_MOST = 50_000
MARKS_MOST = 2000
LIBRARY_FAULTS = (ArchiveError, StoreError, JournalVersion)


class TimelineMark(msgspec.Struct, frozen=True):
    """Something that happened, `seconds` after the session was opened."""

    seconds: float
    number: int
    type: str
    epoch: int
    chunk: int = -1
    text: str = ""
    value: int = 0


class LibrarySession(msgspec.Struct, frozen=True):
    """`seconds`: from its first to its last entry. `cut`: so many of its first entries are not kept any more."""

    session: str
    room: str
    card: str
    opened: float
    seconds: float
    entries: int
    ended: bool
    cut: int
    films: tuple[RecordingInfo, ...]


class LibraryPage(msgspec.Struct, frozen=True):
    """`total`: sessions that match, of which `sessions` are those from `offset` on, the newest first."""

    total: int
    offset: int
    sessions: tuple[LibrarySession, ...]


class SessionDetail(msgspec.Struct, frozen=True):
    """`marks`: the first `MARKS_MOST` of what happened besides chunks, inputs and frames; `likes`: by value."""

    session: LibrarySession
    likes: int
    dislikes: int
    chunks: int
    types: Mapping[str, int]
    marks: tuple[TimelineMark, ...]


class Library:
    """See the module docstring."""

    def __init__(self, history: History, recordings: Recordings) -> None:
        self._history, self.recordings = history, recordings
        self._kept: dict[str, SessionSummary] = {}

    async def page(self, offset: int, limit: int, card: str | None = None) -> LibraryPage:
        """Raises `LIBRARY_FAULTS`."""
        names = await self._history.names()
        self._kept = {name: self._kept[name] for name in names if name in self._kept}
        found = [each for name in names if (each := await self._summary(name)) is not None]
        found = [each for each in found if card is None or each.card == card]
        found.sort(key=lambda each: (-each.opened, each.session))
        shown = [await self._session(each) for each in found[offset : offset + limit]]
        return LibraryPage(len(found), offset, tuple(shown))

    async def detail(self, session: str) -> SessionDetail:
        """Raises `NoSession`, `LIBRARY_FAULTS`."""
        summary = await self._history.summary(session)
        marks: list[TimelineMark] = []
        types: dict[str, int] = {}
        likes = dislikes = 0
        async for entry in self._history.read(session):
            if not isinstance(entry, Entry):
                continue
            kind = str(type(entry.event).__struct_config__.tag)
            types[kind] = types.get(kind, 0) + 1
            if isinstance(entry.event, events.FeedbackGiven):
                likes += entry.event.value > 0
                dislikes += entry.event.value < 0
            if len(marks) < MARKS_MOST and kind.partition(".")[0] not in ("chunk", "input", "frame"):
                marks.append(_mark(entry, kind, summary.opened))
        chunks = types.get("chunk.committed", 0)
        return SessionDetail(await self._session(summary), likes, dislikes, chunks, types, tuple(marks))

    async def entries(self, session: str, after: int, types: tuple[str, ...], most: int) -> list[Entry]:
        """Entries beyond number `after` whose type, or its group, is one of `types` (none = all). Raises
        `LIBRARY_FAULTS`."""
        found: list[Entry] = []
        async for entry in self._history.read(session, after):
            if len(found) >= most:
                break
            if isinstance(entry, Entry):
                kind = str(type(entry.event).__struct_config__.tag)
                if not types or kind in types or kind.partition(".")[0] in types:
                    found.append(entry)
        return found

    async def _summary(self, name: str) -> SessionSummary | None:
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        try:
            summary = await self._history.summary(name)
        except (NoSession, JournalVersion):
            return None
        if summary.whole and len(self._kept) < KEPT_MOST:
            self._kept[name] = summary
        return summary

    async def _session(self, summary: SessionSummary) -> LibrarySession:
        films = await asyncio.to_thread(self.recordings.of, summary.session)
        return LibrarySession(
            session=summary.session,
            room=summary.room,
            card=summary.card,
            opened=summary.opened,
            seconds=round(max(0.0, summary.ended - summary.opened), 3),
            entries=summary.entries,
            ended=summary.whole,
            cut=summary.cut,
            films=tuple(films),
        )


def _mark(entry: Entry, kind: str, opened: float) -> TimelineMark:
    event = entry.event
    match event:
        case events.PromptAsked():
            chunk, text, value = -1, event.text, event.number
        case events.SegmentStarted():
            chunk, text, value = event.chunk, "", event.prompt_version
        case events.FeedbackGiven():
            chunk, text, value = event.chunk, event.participant, event.value
        case events.Faulted():
            chunk, text, value = -1, event.code, 0
        case _:
            chunk, text, value = -1, "", 0
    return TimelineMark(round(entry.at - opened, 3), entry.number, kind, entry.epoch, chunk, text, value)
