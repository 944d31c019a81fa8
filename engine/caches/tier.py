"""One tier of the store: a folder of sessions' folders, and how many bytes it may hold. Blocking."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from .parts import WorldPart, manifest_of

MARKS_MAX = 16
"""Checkpoints of a session that are kept for going back."""
NEWEST = "newest.world"


class StoreFull(OSError):
    """A world does not fit into what the store may hold."""


class Tier:
    """`bytes_max` None = as many as there are."""

    def __init__(self, root: Path, bytes_max: int | None) -> None:
        self._root, self._bytes_max = root, bytes_max
        self.recount()

    @property
    def used(self) -> int:
        return sum([*self._sizes.values()])

    def recount(self) -> None:
        """Another process has written here too."""
        self._sizes = {path.name: _size(path) for path in _folders(self._root)}

    def holds(self, session: str) -> bool:
        return self._path(session).name in self._sizes

    def has_room(self, size: int) -> bool:
        return self._bytes_max is None or self.used + size <= self._bytes_max

    def check_room(self, session: str, size: int) -> None:
        """Raise `StoreFull` with the numbers."""
        if not self.has_room(size):
            raise StoreFull(
                f"{size} bytes of session {session}'s world do not fit: {self.used} of {self._bytes_max} are used"
            )

    def read(self, session: str, name: str) -> bytes | None:
        try:
            return (self._path(session) / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def has(self, session: str, name: str) -> bool:
        return (self._path(session) / name).exists()

    def write(self, session: str, name: str, data: bytes) -> None:
        folder = self._path(session)
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{name}.new"
        fresh.write_bytes(data)
        os.replace(fresh, folder / name)
        self._count(folder)

    def link(self, source: str, session: str, part: WorldPart) -> bool:
        """Another name for a part that lies here; False when it does not."""
        folder = self._path(session)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with contextlib.suppress(FileExistsError):
                os.link(self._path(source) / file_of(part), folder / file_of(part))
        except FileNotFoundError:
            return False
        self._count(folder)
        return True

    def mark(self, session: str, number: int) -> None:
        """The newest manifest by a second name; of many marks the older ones stand further apart."""
        folder = self._path(session)
        mark = folder / f"{number}.mark"
        mark.unlink(missing_ok=True)
        os.link(folder / NEWEST, mark)
        marks = self.marks(session)
        if len(marks) > MARKS_MAX:
            for old in marks[1 : MARKS_MAX // 2 : 2]:
                (folder / f"{old}.mark").unlink(missing_ok=True)

    def marks(self, session: str) -> list[int]:
        return sorted(int(path.stem) for path in self._path(session).glob("*.mark"))

    def remove(self, session: str, name: str) -> None:
        (self._path(session) / name).unlink(missing_ok=True)

    def named(self, session: str) -> set[str]:
        """Files of parts that manifests here name."""
        folder, names = self._path(session), set[str]()
        for path in (folder / NEWEST, *folder.glob("*.mark")):
            if (data := self.read(session, path.name)) is not None:
                names.update(file_of(part) for part in manifest_of(data).parts)
        return names

    def trim(self, session: str, named: set[str]) -> None:
        folder = self._path(session)
        for path in folder.glob("*.part"):
            if path.name not in named:
                path.unlink(missing_ok=True)
        if folder.exists():
            with contextlib.suppress(OSError):  # it holds something
                folder.rmdir()
        self._count(folder)

    def hand_over(self, session: str, to: "Tier") -> None:
        """Move the session's folder, over what is there under its name."""
        here, there = self._path(session), to._path(session)
        to.forget(session)
        if here.is_dir():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(here, there)
            to._count(there)
        self._sizes.pop(here.name, None)

    def forget(self, session: str) -> None:
        folder = self._path(session)
        shutil.rmtree(folder, ignore_errors=True)
        self._sizes.pop(folder.name, None)

    def sweep(self, before: float) -> None:
        for folder in [*_folders(self._root)]:
            if folder.stat().st_mtime < before:
                shutil.rmtree(folder, ignore_errors=True)
                self._sizes.pop(folder.name, None)

    def _path(self, session: str) -> Path:
        return self._root / hashlib.sha256(session.encode()).hexdigest()[:32]

    def _count(self, folder: Path) -> None:
        size = _size(folder)
        if size:
            self._sizes[folder.name] = size
        else:
            self._sizes.pop(folder.name, None)


def file_of(part: WorldPart) -> str:
    return f"{part.digest}.part"


def _folders(root: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        yield from (path for path in root.iterdir() if path.is_dir() and len(path.name) == 32)


def _size(folder: Path) -> int:
    """Of parts and manifests; a file with several names here counts once."""
    try:
        stats = [entry.stat() for entry in os.scandir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return sum({stat.st_ino: stat.st_size for stat in stats}.values())
