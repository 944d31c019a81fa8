"""Reads journals whole: what is archived and what is hot, as one row of entries. What is missing is said.

archive [1 .. 4096]   store [4097 .. 4410]   ->   1 .. 4410, or a `Cut` where retention gave entries up
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import msgspec

from .archive import Archive, Index, PartInfo
from .entry import Entry, JournalVersion, decode, ratings
from .events import JournalEvent, SessionClosed, SessionOpened
from .store import HotStore, StoredEntry


@dataclass(frozen=True, slots=True)
class Cut:
    """Entries `first` to `last` are not there any more, or not yet anywhere they could be read from."""

    session: str
    first: int
    last: int


class JournalCut(LookupError):
    """A journal that is asked for whole is not whole any more."""


class NoSession(LookupError):
    """No journal of that name."""


class SessionSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A journaled session. `opened`, `ended`: Unix seconds of its first and last entry. `bytes`: of its archive.

    `whole`: it has ended. `cut`: so many of its first entries were given up. `counts`: archived entries by type;
    `likes`, `dislikes`: among them.
    """

    session: str
    room: str
    card: str
    opened: float
    ended: float
    entries: int
    bytes: int
    cut: int
    whole: bool
    counts: Mapping[str, int]
    likes: int
    dislikes: int


class History:
    """`archive` None = there is only the hot part."""

    def __init__(self, store: HotStore, archive: Archive | None) -> None:
        self._store, self.archive = store, archive

    async def rows(self, session: str, after: int = 0) -> AsyncIterator[StoredEntry | Cut]:
        """Entries beyond number `after` as they are stored. Raises `StoreError`, `ArchiveError`."""
        expected = after + 1
        while True:
            index, moved = await self._index(session), False
            if index is not None and index.cut >= expected:
                yield Cut(session, expected, index.cut)
                expected = index.cut + 1
            for info in index.parts if index is not None else ():
                if info.last < expected:
                    continue
                for row in await asyncio.to_thread(self._part, session, info):
                    if row.number > expected:
                        yield Cut(session, expected, row.number - 1)
                    if row.number >= expected:
                        yield row
                        expected = row.number + 1
            async for row in self._store.rows(session, expected - 1):
                if row.number > expected:
                    if moved := await self._archived(session, expected):
                        break
                    yield Cut(session, expected, row.number - 1)
                yield row
                expected = row.number + 1
            if not moved and not await self._archived(session, expected):
                return

    async def _archived(self, session: str, number: int) -> bool:
        """Whether that entry was moved to the archive while the store was read."""
        index = await self._index(session)
        return index is not None and index.last >= number

    async def read(self, session: str, after: int = 0) -> AsyncIterator[Entry | Cut]:
        """As `rows`, decoded. Raises `JournalVersion` too."""
        async for row in self.rows(session, after):
            yield row if isinstance(row, Cut) else decode(session, row.number, row.at, row.body)

    async def events(self, session: str) -> AsyncIterator[JournalEvent]:
        """All that happened, oldest first; raises `JournalCut` where something is missing."""
        async for entry in self.read(session):
            if isinstance(entry, Cut):
                raise JournalCut(f"entries {entry.first} to {entry.last} of session {session} are not kept any more")
            yield entry.event

    async def tail(self, session: str, after: int = 0, every_s: float = 0.5) -> AsyncIterator[Entry | Cut]:
        """As `read`, and then what comes, until the session has ended."""
        while True:
            async for entry in self.read(session, after):
                yield entry
                if isinstance(entry, Entry):
                    after = entry.number
                    if isinstance(entry.event, SessionClosed):
                        return
            await asyncio.sleep(every_s)

    async def last(self, session: str) -> int:
        """The number of its newest entry, 0 = none."""
        index, newest = await self._index(session), await self._store.last(session)
        return max(0 if index is None else index.last, 0 if newest is None else newest.number)

    async def names(self) -> list[str]:
        archived = [] if self.archive is None else await asyncio.to_thread(self.archive.sessions)
        return sorted({*archived, *await self._store.names()})

    async def summary(self, session: str) -> SessionSummary:
        """Raises `NoSession`."""
        index = await self._index(session)
        newest = None if index is not None and index.whole else await self._store.last(session)
        if index is None:
            index = await self._hot_index(session)
        if index is None:
            raise NoSession(f"no session '{session}' in this journal")
        return _summary(index, newest)

    async def find(self, session: str) -> SessionSummary | None:
        """As `summary`; None where there is none that this version reads."""
        try:
            return await self.summary(session)
        except (NoSession, JournalVersion):
            return None

    async def summaries(self, known: Mapping[str, SessionSummary] | None = None) -> list[SessionSummary]:
        """Every session, the newest first; what another version wrote is left out. `known`: whole ones by name, which
        are not read again."""
        whole, others = await asyncio.to_thread(self._archived_whole, known or {})
        others |= {name for name in await self._store.names() if name not in whole}
        found = [*whole.values()]
        for session in others:
            if (summary := await self.find(session)) is not None:
                found.append(summary)
        return await asyncio.to_thread(sorted, found, key=lambda each: (-each.opened, each.session))

    async def children(self, session: str) -> list[str]:
        """Sessions whose worlds go on from a moment of this one; those whose beginning is not kept are left out."""
        return [name for name in await self.names() if await self.origin(name) == session]

    async def hot_likes(self, session: str) -> tuple[int, int]:
        """Likes and dislikes that are not archived."""
        index = await self._index(session)
        after = 0 if index is None else index.last
        return ratings([row.body async for row in self._store.rows(session, after)])

    async def hot_bytes(self, session: str) -> int:
        """Bytes of the bodies that are not archived."""
        return sum([len(row.body) async for row in self._store.rows(session)])

    async def archive_problems(self, session: str) -> list[str]:
        """What is wrong with the archived part, one line each."""
        index = await self._index(session)
        if index is None or self.archive is None:
            return []
        return await asyncio.to_thread(self.archive.check, index)

    def _archived_whole(self, known: Mapping[str, SessionSummary]) -> tuple[dict[str, SessionSummary], set[str]]:
        """Sessions that are in the archive alone, and the names of others that are in it."""
        whole: dict[str, SessionSummary] = {}
        others: set[str] = set()
        for name in [] if self.archive is None else self.archive.sessions():
            if name in known:
                whole[name] = known[name]
            elif self.archive is not None and (index := self.archive.index(name)) is not None and index.whole:
                whole[name] = _summary(index, None)
            else:
                others.add(name)
        return whole, others

    async def _index(self, session: str) -> Index | None:
        return None if self.archive is None else await asyncio.to_thread(self.archive.index, session)

    async def _hot_index(self, session: str) -> Index | None:
        """What a session that was never archived says of itself; None for one that has lost its beginning."""
        async for row in self._store.rows(session):
            event = decode(session, row.number, row.at, row.body).event
            if isinstance(event, SessionOpened):
                return Index.of(session, row.at, event)
            return None
        return None

    async def origin(self, session: str) -> str | None:
        """None where nobody can tell."""
        try:
            index = await self._index(session) or await self._hot_index(session)
            if index is None or index.origin is not None or index.cut:
                return None if index is None else index.origin
            async for entry in self.read(session):
                opened = entry.event if isinstance(entry, Entry) else None
                return opened.origin.session if isinstance(opened, SessionOpened) and opened.origin else None
        except JournalVersion:
            pass
        return None

    def _part(self, session: str, info: PartInfo) -> list[StoredEntry]:
        assert self.archive is not None
        return self.archive.part(session, info)


def _summary(index: Index, newest: StoredEntry | None) -> SessionSummary:
    last = max(index.last, newest.number if newest is not None else 0)
    return SessionSummary(
        session=index.session,
        room=index.room,
        card=index.card,
        opened=index.opened,
        ended=newest.at if newest is not None and newest.number > index.last else index.ended,
        entries=last - index.cut,
        bytes=index.size,
        cut=index.cut,
        whole=index.whole,
        counts=index.counts,
        likes=index.likes,
        dislikes=index.dislikes,
    )
