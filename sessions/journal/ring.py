"""What was recorded and is not stored yet, in shared memory: it outlives a process that is killed at any moment.

    active u64 | tail u64 x 2 | half 0 | half 1      half: length u32 | crc32 u32 | msgpack(StoredEntry), ...

`add` is a copy of some hundred bytes and touches no disk. A half that is full is left for the other one, which begins
with what is still not stored. What does not fit is left to the buffer and the spool. Power loss loses the ring.
"""

import hashlib
import mmap
import os
import struct
from collections.abc import Iterable
from pathlib import Path

import msgspec

from . import records
from .store import StoredEntry

SIZE = 8 << 20
_WORD = struct.Struct("<Q")
_HEAD = 3 * _WORD.size


class Ring:
    """One file, held by one process (`assemble` holds the data folder's lock)."""

    def __init__(self, path: Path, size: int = SIZE) -> None:
        self.path = path
        fd = records.private_open(path)
        try:
            if os.fstat(fd).st_size != size:
                os.ftruncate(fd, 0)
                os.ftruncate(fd, size)
            self._map = mmap.mmap(fd, size)
        finally:
            os.close(fd)
        self._half = (size - _HEAD) // 2
        self._active = self._word(0) & 1
        self._tail = min(self._word(1 + self._active), self._half)
        self.holds = True
        """Everything that was added since the last `clear` is in it."""

    def left(self) -> list[StoredEntry]:
        """What an earlier process recorded and had not stored, oldest first."""
        entries: list[StoredEntry] = []
        offset = self._front(self._active)
        end = offset + self._tail
        while offset < end:
            try:
                entry, offset = records.read_in(self._map, offset)
            except (ValueError, msgspec.MsgspecError):
                break
            entries.append(entry)
        return entries

    def add(self, entry: StoredEntry, waiting: Iterable[StoredEntry]) -> bool:
        """`waiting`: what is not stored yet, this entry with it. False when it does not fit."""
        if self._put(self._active, self._tail, records.pack((entry,))):
            return True
        other, block = 1 - self._active, records.pack(tuple(waiting))
        if len(block) > self._half // 2 or not self._put(other, 0, block):
            self.holds = False
            return False
        self._active = other
        self._set(0, other)
        return True

    def clear(self) -> None:
        """Everything recorded so far is stored."""
        self._tail, self.holds = 0, True
        self._set(1 + self._active, 0)

    def close(self) -> None:
        """An empty ring leaves nothing behind."""
        empty = self._tail == 0
        self._map.close()
        if empty:
            self.path.unlink(missing_ok=True)

    def _put(self, half: int, tail: int, block: bytes) -> bool:
        end = tail + len(block)
        if end > self._half:
            return False
        front = self._front(half)
        self._map[front + tail : front + end] = block
        self._set(1 + half, end)  # after its bytes: a record counts once it is whole
        self._tail = end
        return True

    def _front(self, half: int) -> int:
        return _HEAD + half * self._half

    def _word(self, index: int) -> int:
        (value,) = _WORD.unpack_from(self._map, index * _WORD.size)
        return int(value)

    def _set(self, index: int, value: int) -> None:
        _WORD.pack_into(self._map, index * _WORD.size, value)


def ring_path(data_dir: Path) -> Path:
    """In memory where the system has such a folder, else beside the journal."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        return data_dir / "ring"
    name = hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]
    return shared / f"worldroom-{os.getuid()}-{name}.ring"
