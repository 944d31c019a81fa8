"""The append-only file that keeps journal entries, in order, while Redis is away.

    record: length u32 | crc32 u32 | msgpack(Entry)      a torn last record (power cut) is cut off at the next start

Read from the front while it is drained; emptied once everything is in Redis. Blocking: called off the event loop.
"""

import fcntl
import os
import struct
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

_HEAD = struct.Struct("<II")


class SpoolEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One event of one session. `number` counts from 1 in its session; `at` is Unix seconds; `body` JSON."""

    session: str
    number: int
    at: float
    body: bytes


class SpoolTaken(OSError):
    """One clear line for the person who started a second server."""


class Spool:
    """One file, held by one process, opened for append; `size` and `drained` are offsets into it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - lives as long as the journal
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise SpoolTaken(f"another Worldroom server spools to {path}; give this one its own data folder") from error
        self._lock = threading.Lock()
        self.drained = 0
        self.size = self._whole_length()
        self._file.truncate(self.size)

    @property
    def empty(self) -> bool:
        return self.drained >= self.size

    @property
    def bytes_left(self) -> int:
        return self.size - self.drained

    def append(self, entries: Sequence[SpoolEntry]) -> None:
        """Write entries and force them to disk."""
        encode = msgspec.msgpack.encode
        bodies = [encode(entry) for entry in entries]
        block = b"".join(_HEAD.pack(len(body), zlib.crc32(body)) + body for body in bodies)
        with self._lock:
            try:
                written = 0
                while written < len(block):
                    written += self._file.write(memoryview(block)[written:])
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(self.size)
                raise
            self.size += len(block)

    def peek(self, limit: int) -> tuple[list[SpoolEntry], int]:
        """The next entries, at most `limit`, and the offset after them."""
        entries: list[SpoolEntry] = []
        offset = self.drained
        while len(entries) < limit and offset < self.size:
            body, offset = self._record(offset)
            entries.append(msgspec.msgpack.decode(body, type=SpoolEntry))
        return entries, offset

    def drain_to(self, offset: int) -> None:
        """Everything before `offset` is in Redis; an empty spool takes no disk."""
        with self._lock:
            self.drained = offset
            if self.empty:
                self._file.truncate(0)
                self.drained = self.size = 0

    def close(self) -> None:
        self._file.close()

    def _record(self, offset: int) -> tuple[bytes, int]:
        length, crc = _HEAD.unpack(os.pread(self._file.fileno(), _HEAD.size, offset))
        body = os.pread(self._file.fileno(), length, offset + _HEAD.size)
        if len(body) < length or zlib.crc32(body) != crc:
            raise ValueError(f"journal spool: record at byte {offset} of {length} bytes does not match its checksum")
        return body, offset + _HEAD.size + length

    def _whole_length(self) -> int:
        """Bytes of whole records from the front of the file."""
        end = os.fstat(self._file.fileno()).st_size
        offset = 0
        while offset + _HEAD.size <= end:
            try:
                _, after = self._record(offset)
            except ValueError:
                break
            offset = after
        return offset
