"""Removes a session whole: journal, archive, films, the world that waits suspended, its checkpoints; and says what
that was.

A copy that was exported, downloaded or backed up is out of reach. Knows no command line and no viewer.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from .journal.archive import Archive
from .journal.history import History, SessionSummary
from .journal.store import HotStore
from .recording.recordings import Recordings
from .rooms.suspend_store import SuspendStore

NAMED_MOST = 3
"""Sessions that a refusal names."""


class Removed(msgspec.Struct, frozen=True):
    """`entries` of the journal, of which `archive_bytes` lay in the archive; `films`, `film_bytes`: recordings with
    what lay beside them; `worlds`: suspended ones; `world_bytes`: of them and of checkpoints."""

    session: str
    entries: int
    archive_bytes: int
    films: int
    film_bytes: int
    worlds: int
    world_bytes: int


class NotEnded(RuntimeError):
    """The session may still be added to; one line."""


class HasChildren(RuntimeError):
    """Other sessions go on from this one; one line with their names."""


@dataclass(frozen=True, slots=True)
class Eraser:
    """`checkpoints(session)` removes what lies on the disk of its worlds; how many bytes that were."""

    store: HotStore
    archive: Archive
    recordings: Recordings
    suspended: SuspendStore
    checkpoints: Callable[[str], int]

    async def summary(self, session: str) -> SessionSummary:
        """Raises `NoSession`, `StoreError`, `ArchiveError`."""
        return await History(self.store, self.archive).summary(session)

    async def delete(self, session: str, running: bool = False, force: bool = False) -> Removed:
        """`running`: a server goes on beside this, so only a session that has ended and is archived can be deleted.
        `force`: also one that others go on from, which cannot be replayed then.

        Raises `NotEnded`, `HasChildren`, `NoSession`, `StoreError`, `ArchiveError`, `SuspendStoreError`, `OSError`.
        What failed half way is finished by the same call again: the index goes last.
        """
        summary = await self.summary(session)
        if running and not summary.whole:
            raise NotEnded(f"session {session} has not ended, or is not archived yet")
        if not force and (children := await History(self.store, self.archive).children(session)):
            raise HasChildren(_needed(session, children))
        worlds, world_bytes = await self.forget_world(summary)
        films = await asyncio.to_thread(self.recordings.of, session)
        film_bytes = await asyncio.to_thread(self.recordings.delete, session)
        await self.store.drop(session)
        archived = await asyncio.to_thread(self.archive.delete, session)
        return Removed(session, summary.entries, archived, len(films), film_bytes, worlds, world_bytes)

    async def forget_world(self, summary: SessionSummary) -> tuple[int, int]:
        """The suspended world of a session, if there is one, and its checkpoints: how many, and their bytes."""
        size = await asyncio.to_thread(self.checkpoints, summary.session)
        found = await self.suspended.find(summary.room, [summary.card])
        if found is None or found.record.session.name != summary.session:
            return 0, size
        await self.suspended.forget(summary.room)
        return 1, size + len(found.world)


def _needed(session: str, children: list[str]) -> str:
    named = ", ".join(children[:NAMED_MOST])
    more = f" and {len(children) - NAMED_MOST} more" if len(children) > NAMED_MOST else ""
    return f"worlds go on from session {session} in {named}{more}, which cannot be replayed without it"
