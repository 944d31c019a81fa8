"""Moves closed parts of the journal from its hot store to the archive: a room's memory does not grow with its age.

    hot store: [archived, being trimmed] [a part's worth or less] <- append       per room at most `part_bytes` + what
    archive:   [part][part][part] index                                           comes while one part is written

While the archive is away the hot part grows to `ceiling_bytes`; then the journal goes to its spool (`full`), not to
memory. What retention gives up is counted, logged and written into the session's index.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...clock import Clock
from .archive import Archive, ArchiveError, Index
from .entry import JournalVersion, decode
from .events import SessionOpened
from .store import HotStore, StoredEntry, StoreError

log = logging.getLogger("worldroom.journal")

ENTRY_OVERHEAD = 64
"""Bytes a store needs for an entry besides its body."""


@dataclass(frozen=True, slots=True)
class ArchiveSpec:
    """`part_bytes`: hot bytes of a session that make a part; `ceiling_bytes`: at most so many are hot.

    `keep_s`: age at which entries are given up; `keep_entries`: at most so many of a session are kept (None = all).
    `idle_s`: a session that an earlier process left unended is archived after so long.
    """

    part_bytes: int = 1 << 20
    ceiling_bytes: int = 4 << 20
    keep_s: float = 7 * 24 * 3600.0
    keep_entries: int | None = None
    idle_s: float = 2 * 3600.0
    settle_s: float = 1.0
    retry_s: float = 5.0
    retain_s: float = 600.0


@dataclass(slots=True)
class _Hot:
    """A session's entries that are stored and not archived; `ended`: its last event is among them."""

    bytes: int = 0
    newest: int = 0
    ended: bool = False
    opened: bool = False


@dataclass(slots=True)
class ArchiveCounters:
    """`archived`, `cut`: entries; `errors`: attempts that failed."""

    archived: int = 0
    cut: int = 0
    errors: int = 0


@dataclass(slots=True)
class Archiver:
    """Told what was stored (`stored`), works in a task of its own (`start`)."""

    clock: Clock
    store: HotStore
    archive: Archive
    spec: ArchiveSpec = field(default_factory=ArchiveSpec)
    counters: ArchiveCounters = field(default_factory=ArchiveCounters)
    _hot: dict[str, _Hot] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _task: "asyncio.Task[None] | None" = None
    _retained_at: float = -math.inf

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="archiver")

    async def close(self) -> None:
        """Archive the sessions that have ended; others stay hot for the next process.

        What is being archived is not cut off: a thread would go on with it beside what comes next.
        """
        if self._task is not None:
            self._closing.set()
            self._wake.set()
            try:
                await asyncio.wait([self._task])
            finally:
                self._task.cancel()
                self._task = None
        await self.settle()

    def stored(self, entries: Sequence[StoredEntry]) -> None:
        """These entries are in the hot store now."""
        for entry in entries:
            hot = self._hot.get(entry.session)
            if hot is None:
                hot = self._hot[entry.session] = _Hot()
            hot.bytes += len(entry.body) + ENTRY_OVERHEAD
            hot.newest = max(hot.newest, entry.number)
            hot.ended = hot.ended or b'"session.closed"' in entry.body
            if hot.ended or not hot.opened or hot.bytes >= self.spec.part_bytes:
                self._wake.set()

    @property
    def full(self) -> bool:
        """A session has as many hot bytes as it may have: the archive does not keep up."""
        return any(hot.bytes >= self.spec.ceiling_bytes for hot in self._hot.values())

    def hot_bytes(self) -> int:
        return sum(hot.bytes for hot in self._hot.values())

    async def settle(self) -> None:
        """Archive what has become a part, and everything of sessions that have ended."""
        for session, hot in list(self._hot.items()):
            if hot.ended or hot.bytes >= self.spec.part_bytes or not hot.opened:
                await self._settle_one(session, hot)

    async def archive_whole(self, session: str) -> None:
        """Move all of a session that nobody adds to any more."""
        newest = await self.store.last(session)
        if newest is not None:
            await self._settle_one(session, _Hot(newest=newest.number, ended=True))

    async def sweep(self) -> None:
        """Archive what an earlier process left: sessions of this archive that nobody has added to for long."""
        now = self.clock.wall()
        try:
            names = await self.store.names()
            for session in names:
                if session in self._hot or (newest := await self.store.last(session)) is None:
                    continue
                if now - newest.at < self.spec.idle_s or await self._index(session) is None:
                    continue
                self._hot[session] = _Hot(newest=newest.number, ended=True, opened=True)
        except (StoreError, ArchiveError) as error:
            self._failed(error)
        await self.settle()

    async def retain(self) -> None:
        """Give up what is older, or more, than is kept. A session that kept ones go on from does not grow too old."""
        before, cut = self.clock.wall() - self.spec.keep_s, 0
        origins: dict[str, str] = {}
        kept: list[str] = []
        aged: list[Index] = []
        try:
            for session in await asyncio.to_thread(self.archive.sessions):
                index = await self._index(session)
                if index is None:
                    continue
                origins[session] = index.origin or ""
                gone = index.ended_before(before)
                if not gone:
                    kept.append(session)
                if gone or self._upto(index, before) > index.cut:
                    aged.append(index)
            needed = _ancestors(kept, origins)
            for index in aged:
                cut += await self._retain_one(index, 0.0 if index.session in needed else before)
        except ArchiveError as error:
            self._failed(error)
        if cut:
            self.counters.cut += cut
            log.info("journal: %d entries were given up by retention", cut)

    # ---- inside -----------------------------------------------------------------------------------------------------

    @property
    def _behind(self) -> bool:
        """Something could not be archived when it should have been."""
        return any(hot.ended or not hot.opened or hot.bytes >= self.spec.part_bytes for hot in self._hot.values())

    async def _run(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.spec.retry_s if self._behind else self.spec.retain_s):
                    await self._wake.wait()
            self._wake.clear()
            await self.settle()
            if not self._closing.is_set() and self.clock.now() - self._retained_at >= self.spec.retain_s:
                self._retained_at = self.clock.now()
                await self.sweep()
                await self.retain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.spec.settle_s):
                    await self._closing.wait()

    async def _settle_one(self, session: str, hot: _Hot) -> None:
        upto, ended, size = hot.newest, hot.ended, hot.bytes
        try:
            index = await self._index(session) or await self.claim(session)
            if index is None:
                self._hot.pop(session, None)  # it does not begin here, so it is not ours
                return
            hot.opened = True
            if not ended and size < self.spec.part_bytes:
                return
            entries = [entry async for entry in self.store.rows(session, index.last) if entry.number <= upto]
            await asyncio.to_thread(self.archive.add, index, entries, ended)
            self.counters.archived += len(entries)
            await (self.store.drop(session) if ended else self.store.trim(session, upto))
        except (StoreError, ArchiveError) as error:
            self._failed(error)
            return
        except JournalVersion as error:
            log.warning("journal: session %s is not archived: %s", session, error)
            self._hot.pop(session, None)
            return
        hot.bytes -= size
        if ended:
            self._hot.pop(session, None)

    async def _index(self, session: str) -> Index | None:
        return await asyncio.to_thread(self.archive.index, session)

    async def claim(self, session: str) -> Index | None:
        """Made when a session's first entry is stored: from then on it is this archive's."""
        async for row in self.store.rows(session):
            event = decode(session, row.number, row.at, row.body).event
            if not isinstance(event, SessionOpened):
                return None
            index = Index.of(session, row.at, event)
            await asyncio.to_thread(self.archive.put_index, index)
            return index
        return None

    async def _retain_one(self, index: Index, before: float) -> int:
        if index.ended_before(before):
            await asyncio.to_thread(self.archive.delete, index.session)
            return index.last - index.cut
        return (await asyncio.to_thread(self.archive.cut, index, self._upto(index, before))).cut - index.cut

    def _upto(self, index: Index, before: float) -> int:
        """The last entry that is too old, or one too many."""
        upto = max((part.last for part in index.parts if part.ended < before), default=0)
        return upto if self.spec.keep_entries is None else max(upto, index.last - self.spec.keep_entries)

    def _failed(self, error: OSError) -> None:
        if self.counters.errors == 0:
            log.warning("%s; the journal stays where it is until that works", error)
        self.counters.errors += 1


def _ancestors(sessions: Iterable[str], origins: Mapping[str, str]) -> set[str]:
    """Those that some of these go on from, over any number of others. `origins`: '' = it begins."""
    found: set[str] = set()
    for session in sessions:
        parent = origins.get(session, "")
        while parent and parent not in found:
            found.add(parent)
            parent = origins.get(parent, "")
    return found
