"""One tier of the store: a folder of sessions' folders, and how many bytes it may hold. Blocking.

What each write adds and each removal frees is told to a ledger, which all processes that keep worlds share; no folder
is counted again. A file that has several names in one folder counts once, in several folders once in each.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from .ledger import ByteLedger
from .parts import WorldPart, manifest_of

MARKS_MAX = 16
"""Checkpoints of a session that are kept for going back."""
NEWEST = "newest.world"
ASIDE = "aside "
"""Begins the name under which a world that was suspended waits for the next server."""


class StoreFull(OSError):
    """A world does not fit into what the store may hold."""


class Tier:
    """`bytes_max` None = as many as there are. `ledger`: a file that processes share; None = this one is alone."""

    def __init__(self, root: Path, bytes_max: int | None, ledger: Path | None = None) -> None:
        self._root, self._bytes_max = root, bytes_max
        self._ledger = ByteLedger(ledger, lambda: sum(map(_size, _folders(root))))

    @property
    def used(self) -> int:
        return self._ledger.used

    def holds(self, session: str) -> bool:
        return self._path(session).is_dir()

    def take_room(self, size: int) -> bool:
        """Take so many bytes for what is written next, by `writing`; False when they do not fit."""
        return self._ledger.take(size, self._bytes_max)

    @contextlib.contextmanager
    def writing(self, session: str, taken: int) -> Iterator[Callable[[str, bytes], None]]:
        """Gives what writes a file of the session into room that was taken; what is left of that is given back."""
        left = taken

        def write(name: str, data: bytes) -> None:
            nonlocal left
            self._put(session, name, data)
            left -= len(data)

        try:
            yield write
        finally:
            self._ledger.add(-left)

    def full(self, session: str, size: int) -> StoreFull:
        """What to raise, with the numbers."""
        return StoreFull(
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
        """Whether there is room or not: something small."""
        self._ledger.add(len(data))
        self._put(session, name, data)

    def link(self, source: str, session: str, part: WorldPart) -> bool:
        """Another name for a part that lies here; False when it does not."""
        folder = self._path(session)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self._path(source) / file_of(part), folder / file_of(part))
        except FileExistsError:
            return True
        except FileNotFoundError:
            return False
        self._ledger.add(part.size)
        return True

    def mark(self, session: str, number: int) -> None:
        """The newest manifest by a second name; of many marks the older ones stand further apart."""
        folder = self._path(session)
        self.remove(session, f"{number}.mark")
        os.link(folder / NEWEST, folder / f"{number}.mark")
        marks = self.marks(session)
        if len(marks) > MARKS_MAX:
            for old in marks[1 : MARKS_MAX // 2 : 2]:
                self.remove(session, f"{old}.mark")

    def marks(self, session: str) -> list[int]:
        return sorted(int(path.stem) for path in self._path(session).glob("*.mark"))

    def remove(self, session: str, name: str) -> None:
        path = self._path(session) / name
        freed = path.stat().st_size if name.endswith(".part") and path.exists() else _frees(path)
        path.unlink(missing_ok=True)
        self._ledger.add(-freed)

    def named(self, session: str) -> set[str]:
        """Files of parts that manifests here name."""
        folder, names = self._path(session), set[str]()
        for path in (folder / NEWEST, *folder.glob("*.mark")):
            if (data := self.read(session, path.name)) is not None:
                names.update(file_of(part) for part in manifest_of(data).parts)
        return names

    def trim(self, session: str, named: set[str]) -> None:
        """Remove parts that are not among those."""
        folder = self._path(session)
        for path in folder.glob("*.part"):
            if path.name not in named:
                self.remove(session, path.name)
        with contextlib.suppress(OSError):  # it is not there, or holds something
            folder.rmdir()

    def hand_over(self, session: str, to: "Tier") -> None:
        """Move the session's folder, over what is there under its name."""
        here, there = self._path(session), to._path(session)
        to.forget(session)
        if here.is_dir():
            size = _size(here)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(here, there)
            to._ledger.add(size)
            self._ledger.add(-size)

    def forget(self, session: str) -> None:
        self._drop(self._path(session))

    def forget_all(self, session: str) -> int:
        """Every world of a session, whatever future, and what was put aside of them; how many bytes that were."""
        before = self.used
        for folder in self._root.glob(f"{_hash(session)}*"):
            self._drop(folder)
        return before - self.used

    def sweep(self, before: float) -> None:
        for folder in [*_folders(self._root)]:
            if folder.stat().st_mtime < before:
                self._drop(folder)

    def _put(self, session: str, name: str, data: bytes) -> None:
        folder = self._path(session)
        folder.mkdir(parents=True, exist_ok=True)
        fresh, freed = folder / f"{name}.new", _frees(folder / name)
        try:
            fresh.write_bytes(data)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        os.replace(fresh, folder / name)
        self._ledger.add(-freed)

    def _drop(self, folder: Path) -> None:
        size = _size(folder)
        shutil.rmtree(folder, ignore_errors=True)
        self._ledger.add(-size)

    def _path(self, session: str) -> Path:
        """Worlds of one session begin alike: they are called like it, with a dot and what tells them apart behind."""
        of = session.removeprefix(ASIDE).partition(".")[0]
        return self._root / f"{_hash(of)}{_hash(session)}"


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def file_of(part: WorldPart) -> str:
    return f"{part.digest}.part"


def _frees(path: Path) -> int:
    """Bytes that go when this name of a manifest does: none while it has another one, which is in the same folder."""
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return stat.st_size if stat.st_nlink == 1 else 0


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
