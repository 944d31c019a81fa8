"""Snapshots in a folder, one file per session: written whole or not at all. Blocking; knows no snapshot's inside.

put -> folder (host memory, where it lies on tmpfs) -> retire -> disk          get looks in both
put with a number -> also a mark, a second name of the same file: so far a world can go back
"""

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

MARKS_MAX = 16
"""Snapshots of a session that are kept for going back."""


class SnapshotFolder:
    """A process that dies while it writes leaves the older snapshot in place. `disk` None = nothing is retired."""

    def __init__(self, folder: Path, disk: Path | None = None) -> None:
        self._folder, self._disk = folder, disk

    def put(self, session: str, data: bytes, number: int | None = None) -> None:
        """Replace the session's snapshot. `number`: of the chunk before which the world is that."""
        path = self._folder / _name(session)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(data)
        os.replace(fresh, path)
        self._forget_retired(session)
        if number is not None:
            self._mark(path, number)

    def marks(self, session: str) -> list[int]:
        """Chunks before which the world is kept, the earliest first."""
        found = self._folder.glob(f"{_name(session)}.*.mark")
        return sorted(int(path.name.split(".")[-2]) for path in found)

    def marked(self, session: str, chunk: int) -> tuple[int, bytes] | None:
        """The last of the marks at or before `chunk`, with its number."""
        for number in reversed(self.marks(session)):
            if number <= chunk:
                with contextlib.suppress(FileNotFoundError):  # thinned out meanwhile
                    return number, (self._folder / f"{_name(session)}.{number}.mark").read_bytes()
        return None

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
        for mark in self._folder.glob(f"{path.name}.*.mark"):
            mark.unlink(missing_ok=True)
        self._forget_retired(session)

    def _mark(self, path: Path, number: int) -> None:
        """Costs no copy; of many marks the older ones stand further apart."""
        mark = path.with_name(f"{path.name}.{number}.mark")
        mark.unlink(missing_ok=True)
        os.link(path, mark)
        marks = sorted(path.parent.glob(f"{path.name}.*.mark"), key=lambda each: int(each.name.split(".")[-2]))
        if len(marks) > MARKS_MAX:
            for old in marks[1 : MARKS_MAX // 2 : 2]:
                old.unlink(missing_ok=True)

    def _forget_retired(self, session: str) -> None:
        if self._disk is not None:
            (self._disk / _name(session)).unlink(missing_ok=True)


def _name(session: str) -> str:
    return f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.snapshot"
