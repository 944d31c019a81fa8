"""Snapshots in a folder, one file per session: written whole or not at all. Blocking; knows no snapshot's inside."""

import hashlib
import os
from pathlib import Path


class SnapshotFolder:
    """A process that dies while it writes leaves the older snapshot in place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, session: str, data: bytes) -> None:
        """Replace the session's snapshot."""
        path = self._path(session)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(data)
        os.replace(fresh, path)

    def get(self, session: str) -> bytes | None:
        try:
            return self._path(session).read_bytes()
        except FileNotFoundError:
            return None

    def forget(self, session: str) -> None:
        for path in (self._path(session), self._path(session).with_suffix(".new")):
            path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        return self._folder / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.snapshot"
