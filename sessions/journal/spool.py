"""The append-only file that keeps journal entries, in order, while their store is away.

Read from the front while it is drained; emptied once everything is in the store. Blocking: called off the event loop.
"""

import fcntl
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from . import records
from .store import StoredEntry


class SpoolTaken(OSError):
    """One clear line for the person who started a second server."""


class Spool:
    """One file, held by one process, opened for append; `size` and `drained` are offsets into it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = records.private_open(path)
        try:
            os.fchmod(self._fd, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise SpoolTaken(f"another Worldroom server spools to {path}; give this one its own data folder") from error
        self._lock = threading.Lock()
        self.drained = 0
        self.size = records.whole_length(self._fd)
        os.ftruncate(self._fd, self.size)

    @property
    def empty(self) -> bool:
        return self.drained >= self.size

    @property
    def bytes_left(self) -> int:
        return self.size - self.drained

    def append(self, entries: Sequence[StoredEntry]) -> None:
        """Write entries and force them to disk."""
        block = records.pack(entries)
        with self._lock:
            records.write_whole(self._fd, block)
            self.size += len(block)

    def peek(self, limit: int) -> tuple[list[StoredEntry], int]:
        """The next entries, at most `limit`, and the offset after them."""
        entries: list[StoredEntry] = []
        offset = self.drained
        while len(entries) < limit and offset < self.size:
            entry, offset = records.read_at(self._fd, offset)
            entries.append(entry)
        return entries, offset

    def drain_to(self, offset: int) -> None:
        """Everything before `offset` is in the store; an empty spool takes no disk."""
        with self._lock:
            self.drained = offset
            if self.empty:
                os.ftruncate(self._fd, 0)
                self.drained = self.size = 0

    def close(self) -> None:
        os.close(self._fd)
