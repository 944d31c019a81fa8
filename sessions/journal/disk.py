"""The hot part of the journal without a Redis: one append-only file per session in a folder of its own.

Same promises as the streams: a number is taken once, a torn last record is cut off. Blocking work runs in a thread.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote, unquote

from . import records
from .store import StoredEntry, StoreError

SUFFIX = ".log"


class DiskStore:
    """See the module docstring. For one process; `assemble` holds the data folder's lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._tips: dict[str, int] = {}
        self._lock = threading.Lock()

    async def append(self, entries: Sequence[StoredEntry]) -> int:
        try:
            return await asyncio.to_thread(self._locked_append, entries)
        except OSError as error:
            raise StoreError(f"journal: the disk did not take {len(entries)} entries: {error.strerror}") from error

    async def rows(self, session: str, after: int = 0) -> AsyncIterator[StoredEntry]:
        for entry in await asyncio.to_thread(self._entries, session):
            if entry.number > after:
                yield entry

    async def names(self) -> list[str]:
        return [unquote(path.name.removesuffix(SUFFIX)) for path in self._folder.glob(f"*{SUFFIX}")]

    async def last(self, session: str) -> StoredEntry | None:
        return next(reversed(await asyncio.to_thread(self._entries, session)), None)

    async def trim(self, session: str, upto: int) -> None:
        try:
            await asyncio.to_thread(self._locked_trim, session, upto)
        except OSError as error:
            raise StoreError(f"journal: session {session} was not trimmed: {error.strerror}") from error

    async def drop(self, session: str) -> None:
        await asyncio.to_thread(self._locked_drop, session)

    async def close(self) -> None:
        self._tips.clear()

    # ---- in a thread ------------------------------------------------------------------------------------------------

    def _locked_append(self, entries: Sequence[StoredEntry]) -> int:
        with self._lock:
            return self._append(entries)

    def _locked_trim(self, session: str, upto: int) -> None:
        with self._lock:
            self._trim(session, upto)

    def _locked_drop(self, session: str) -> None:
        with self._lock:
            self._path(session).unlink(missing_ok=True)
            self._tips.pop(session, None)

    def _append(self, entries: Sequence[StoredEntry]) -> int:
        added = 0
        for session, group in groupby(sorted(entries, key=_order), key=lambda entry: entry.session):
            tip = self._tip(session)
            fresh = [entry for entry in group if entry.number > tip]
            if fresh:
                self._write(self._path(session), fresh)
                self._tips[session] = fresh[-1].number
            added += len(fresh)
        return added

    def _write(self, path: Path, entries: Sequence[StoredEntry]) -> None:
        fd = records.private_open(path)
        try:
            records.write_whole(fd, records.pack(entries))
        finally:
            os.close(fd)

    def _tip(self, session: str) -> int:
        """The newest number; what a power cut tore off is cut away first."""
        if session not in self._tips:
            entries = self._entries(session, cut=True)
            self._tips[session] = entries[-1].number if entries else 0
        return self._tips[session]

    def _entries(self, session: str, cut: bool = False) -> list[StoredEntry]:
        try:
            fd = os.open(self._path(session), (os.O_RDWR if cut else os.O_RDONLY) | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        try:
            end, offset, entries = records.whole_length(fd), 0, []
            while offset < end:
                entry, offset = records.read_at(fd, offset)
                entries.append(entry)
            if cut:
                os.ftruncate(fd, end)
            return entries
        finally:
            os.close(fd)

    def _trim(self, session: str, upto: int) -> None:
        entries = self._entries(session)
        kept = [entry for entry in entries if entry.number > upto] or entries[-1:]
        if len(kept) == len(entries):
            return
        path = self._path(session)
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        self._write(fresh, kept)
        os.replace(fresh, path)

    def _path(self, session: str) -> Path:
        return self._folder / f"{quote(session, safe='')}{SUFFIX}"


def _order(entry: StoredEntry) -> tuple[str, int]:
    return entry.session, entry.number
