"""What the hot part of a journal lies in: the newest entries of every session. Redis or files.

A number is taken once per session, so an entry that is sent again is skipped by the store itself.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec


class StoredEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One entry as it is stored. `number` counts from 1 in its session; `at` is Unix seconds; `body`: `entry.py`."""

    session: str
    number: int
    at: float
    body: bytes


class StoreError(OSError):
    """The store did not take or give what was asked; the entries are still the caller's. One line, no secrets."""


class HotStore(Protocol):
    """Every call raises `StoreError` when the store is away, full or closed to us."""

    async def append(self, entries: Sequence[StoredEntry]) -> int:
        """Write entries in order; how many were new. After an error, repeat the same entries."""
        ...

    def rows(self, session: str, after: int = 0) -> AsyncIterator[StoredEntry]:
        """A session's entries beyond number `after`, oldest first."""
        ...

    async def names(self) -> list[str]:
        """Sessions that have entries here."""
        ...

    async def last(self, session: str) -> StoredEntry | None:
        """A session's newest entry."""
        ...

    async def trim(self, session: str, upto: int) -> None:
        """Forget entries up to this number, but never the newest one: it says which numbers were taken."""
        ...

    async def drop(self, session: str) -> None:
        """Forget a session."""
        ...

    async def close(self) -> None: ...
