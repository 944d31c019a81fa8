"""The journal of a folder that nobody serves from, open for changes, with what an earlier server had not stored."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from redis.asyncio import Redis

from ..clock import SystemClock
from ..sessions.journal.archiver import Archiver
from ..sessions.journal.history import History
from ..sessions.journal.journal import Journal
from ..sessions.journal.ring import Ring, ring_path
from ..sessions.journal.store import HotStore, StoreError
from ..sessions.rooms.suspend_store import SuspendStore
from .journal_place import FolderLock, JournalPlace, serving


@dataclass(frozen=True, slots=True)
class OpenJournal:
    """`redis`: None without one."""

    archiver: Archiver
    history: History
    rooms: SuspendStore
    redis: Redis | None


@asynccontextmanager
async def changing(place: JournalPlace) -> AsyncIterator[OpenJournal]:
    """The folder is ours alone meanwhile. Raises `FolderTaken`, `RedisUnreachable`, `StoreError`, `ArchiveError`."""
    lock = FolderLock(place.data)
    try:
        async with serving(place) as opened:
            await _settle(place, opened.store)
            archive = place.opened_archive()
            archiver = Archiver(SystemClock(), opened.store, archive)
            yield OpenJournal(archiver, History(opened.store, archive), opened.rooms, opened.redis)
    finally:
        lock.close()


async def _settle(place: JournalPlace, store: HotStore) -> None:
    """What spool and shared memory hold goes to the store: else the next server would bring it back."""
    journal = Journal.open(SystemClock(), store, place.data / "spool", ring=Ring(ring_path(place.data)))
    await journal.close()
    left = journal.counters()
    if left.spool_bytes or left.buffered:
        raise StoreError("not all that an earlier server recorded could be stored: nothing was changed")
