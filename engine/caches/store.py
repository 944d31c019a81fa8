"""Snapshots in a folder, one file per session: written whole or not at all. Blocking; knows no snapshot's inside.

put -> folder (host memory, where it lies on tmpfs) -> retire -> disk          get looks in both
"""

import hashlib
import os
import shutil
from pathlib import Path


class SnapshotFolder:
    """A process that dies while it writes leaves the older snapshot in place. `disk` None = nothing is retired."""

    def __init__(self, folder: Path, disk: Path | None = None) -> None:
        self._folder, self._disk = folder, disk

    def put(self, session: str, data: bytes) -> None:
        """Replace the session's snapshot."""
        path = self._folder / _name(session)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(data)
        os.replace(fresh, path)
        self._forget_retired(session)

    def get(self, session: str) -> bytes | None:
        for folder in (self._folder, self._disk):
            try:
                if folder is not None:
                    return (folder / _name(session)).read_bytes()
            except FileNotFoundError:
                continue
        return None

    def retire(self, session: str) -> None:
        """Move a sleeper's snapshot to the disk."""
        path = self._folder / _name(session)
        if self._disk is not None and path.exists():
            fresh = (self._disk / path.name).with_suffix(".new")
            shutil.copyfile(path, fresh)
            os.replace(fresh, self._disk / path.name)
            path.unlink()

    def forget(self, session: str) -> None:
        path = self._folder / _name(session)
        path.unlink(missing_ok=True)
        path.with_suffix(".new").unlink(missing_ok=True)
        self._forget_retired(session)

    def _forget_retired(self, session: str) -> None:
        if self._disk is not None:
            (self._disk / _name(session)).unlink(missing_ok=True)


def _name(session: str) -> str:
    return f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.snapshot"
