"""The sessions of a server as a library: pages of them, each with its films, its likes and its timeline.

Sessions that have ended do not change, so what was read of them is kept. Whatever takes long is read and decoded in
threads, in small batches: the loop has frames to send.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

import msgspec

from ..journal.archive import ArchiveError
from ..journal.entry import Entry, JournalVersion, decode
from ..journal.history import Cut, History, SessionSummary
from ..journal.latents import kept_latents
from ..journal.store import StoredEntry, StoreError
from ..recording.recordings import Recordings
from ..recording.summary import RecordingInfo
from .timeline import FilmTimeline, Happened, TimelineMark, moment_in, type_of_event

KEPT_MOST = 50_000
BATCH = 500
LIBRARY_FAULTS = (ArchiveError, StoreError, JournalVersion)


class NoFilm(LookupError):
    """The session has no film of that name."""


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
    likes: int
    dislikes: int
    films: tuple[RecordingInfo, ...]


class LibraryPage(msgspec.Struct, frozen=True):
    """`total`: sessions that match, of which `sessions` are those from `offset` on, the newest first. `cards`: how many
    there are of each, whichever was asked for."""

    total: int
    offset: int
    sessions: tuple[LibrarySession, ...]
    cards: Mapping[str, int]


class SessionDetail(msgspec.Struct, frozen=True):
    """`marks`: the first 2,000 of what happened besides chunks, inputs and frames."""

    session: LibrarySession
    chunks: int
    types: Mapping[str, int]
    marks: tuple[TimelineMark, ...]


class Library:
    """See the module docstring. `room` in a question: only sessions of that room are known to who asks."""

    def __init__(self, history: History, recordings: Recordings) -> None:
        self._history, self.recordings = history, recordings
        self._kept: Mapping[str, SessionSummary] = {}

    async def page(self, offset: int, limit: int, card: str | None = None, room: str | None = None) -> LibraryPage:
        """Raises `LIBRARY_FAULTS`."""
        found = await self._history.summaries(self._kept)
        total, cards, shown, self._kept = await asyncio.to_thread(_selected, found, offset, limit, card, room)
        return LibraryPage(total, offset, tuple([await self._session(each) for each in shown]), cards)

    async def summary(self, session: str, room: str | None = None) -> SessionSummary | None:
        """None when there is none, for who asks. Raises `LIBRARY_FAULTS`."""
        summary = await self._history.find(session)
        return summary if summary is not None and room in (None, summary.room) else None

    async def detail(self, summary: SessionSummary) -> SessionDetail:
        """Raises `LIBRARY_FAULTS`."""
        happened = await self._happened(summary)
        chunks = happened.types.get("chunk.committed", 0)
        return SessionDetail(await self._session(summary), chunks, happened.types, tuple(happened.marks))

    async def timeline(self, summary: SessionSummary, film: str) -> FilmTimeline:
        """Raises `NoFilm`, `LIBRARY_FAULTS`."""
        path = self.recordings.path(summary.session, film, ".mp4")
        if path is None:
            raise NoFilm(f"session {summary.session} has no film {film}")
        happened = await self._happened(summary)
        try:
            return await asyncio.to_thread(happened.in_film, path)
        except (OSError, msgspec.MsgspecError):
            raise NoFilm(f"what is kept beside film {film} cannot be read") from None

    async def entries(self, session: str, after: int, types: tuple[str, ...], most: int) -> list[Entry]:
        """Entries beyond number `after` whose type, or its group, is one of `types` (none = all). Raises
        `LIBRARY_FAULTS`."""
        found: list[Entry] = []
        async for rows in self._batches(session, after):
            found += await asyncio.to_thread(_chosen, rows, types)
            if len(found) >= most:
                break
        return found[:most]

    async def moment(self, session: str, film: str, seconds: float) -> tuple[int, int]:
        """Epoch and chunk that come after what a film shows then. Raises `NoFilm`."""
        path = self.recordings.path(session, film, ".mp4")
        if path is None:
            raise NoFilm(f"session {session} has no film {film}")
        try:
            return await asyncio.to_thread(moment_in, path, seconds)
        except (OSError, msgspec.MsgspecError):
            raise NoFilm(f"what is kept beside film {film} cannot be read") from None

    async def latents(self, session: str, digest: str) -> bytes | None:
        """Of a chunk, as a .npy file; None where they were not kept. Raises `LIBRARY_FAULTS`."""
        archive = self._history.archive
        return None if archive is None else await asyncio.to_thread(kept_latents, archive, session, digest)

    async def _happened(self, summary: SessionSummary) -> Happened:
        happened = Happened(summary.opened)
        async for rows in self._batches(summary.session, 0):
            await asyncio.to_thread(happened.take, rows)
        return happened

    async def _batches(self, session: str, after: int) -> AsyncIterator[list[StoredEntry]]:
        rows: list[StoredEntry] = []
        async for row in self._history.rows(session, after):
            if not isinstance(row, Cut):
                rows.append(row)
            if len(rows) >= BATCH:
                yield rows
                rows = []
        if rows:
            yield rows

    async def _session(self, summary: SessionSummary) -> LibrarySession:
        films = await asyncio.to_thread(self.recordings.of, summary.session)
        likes, dislikes = summary.likes, summary.dislikes
        if not summary.whole:
            liked, disliked = await self._history.hot_likes(summary.session)
            likes, dislikes = likes + liked, dislikes + disliked
        return LibrarySession(
            session=summary.session,
            room=summary.room,
            card=summary.card,
            opened=summary.opened,
            seconds=round(max(0.0, summary.ended - summary.opened), 3),
            entries=summary.entries,
            ended=summary.whole,
            cut=summary.cut,
            likes=likes,
            dislikes=dislikes,
            films=tuple(films),
        )


def _selected(
    found: list[SessionSummary], offset: int, limit: int, card: str | None, room: str | None
) -> tuple[int, dict[str, int], list[SessionSummary], dict[str, SessionSummary]]:
    """How many match, how many there are of each card, those of the page, and what will not change any more."""
    cards: dict[str, int] = {}
    matching = []
    for each in found:
        if room is None or each.room == room:
            cards[each.card] = cards.get(each.card, 0) + 1
            if card is None or each.card == card:
                matching.append(each)
    kept = {each.session: each for each in found[:KEPT_MOST] if each.whole}
    return len(matching), cards, matching[offset : offset + limit], kept


def _chosen(rows: list[StoredEntry], types: tuple[str, ...]) -> list[Entry]:
    entries = [decode(row.session, row.number, row.at, row.body) for row in rows]
    kinds = [type_of_event(entry.event) for entry in entries]
    return [
        entry
        for entry, kind in zip(entries, kinds, strict=True)
        if not types or kind in types or kind.partition(".")[0] in types
    ]
