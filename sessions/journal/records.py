"""Journal entries in a file, one record after the other: what the spool and the journal without Redis are made of.

record: length u32 | crc32 u32 | msgpack(StoredEntry)      a torn last record (power cut) is cut off
"""

import mmap
import os
import struct
import zlib
from collections.abc import Sequence

import msgspec

from .store import StoredEntry

_HEAD = struct.Struct("<II")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredEntry).decode


def pack(entries: Sequence[StoredEntry]) -> bytes:
    bodies = [_encode(entry) for entry in entries]
    return b"".join(_HEAD.pack(len(body), zlib.crc32(body)) + body for body in bodies)


def read_at(fd: int, offset: int) -> tuple[StoredEntry, int]:
    """The record at `offset` and the offset after it; raises `ValueError` when it is not whole."""
    head = os.pread(fd, _HEAD.size, offset)
    if len(head) < _HEAD.size:
        raise ValueError(f"journal file: {len(head)} bytes of a record at byte {offset}")
    length, crc = _HEAD.unpack(head)
    body = os.pread(fd, length, offset + _HEAD.size)
    if len(body) < length or zlib.crc32(body) != crc:
        raise ValueError(f"journal file: record at byte {offset} of {length} bytes does not match its checksum")
    return _decode(body), offset + _HEAD.size + length


def read_in(memory: mmap.mmap, offset: int) -> tuple[StoredEntry, int]:
    """As `read_at`, in memory."""
    length, crc = _HEAD.unpack_from(memory, offset)
    start = offset + _HEAD.size
    body = memory[start : start + length]
    if len(body) < length or zlib.crc32(body) != crc:
        raise ValueError(f"journal memory: record at byte {offset} of {length} bytes does not match its checksum")
    return _decode(body), start + length


def whole_length(fd: int) -> int:
    """Bytes of whole records from the front of the file."""
    end, offset = os.fstat(fd).st_size, 0
    while offset < end:
        try:
            _, offset = read_at(fd, offset)
        except (ValueError, msgspec.MsgspecError):
            break
    return offset


def write_whole(fd: int, block: bytes) -> None:
    """Append a block and force it to the disk; raises `OSError` with the file as long as it was."""
    size = os.fstat(fd).st_size
    try:
        written = 0
        while written < len(block):
            written += os.write(fd, memoryview(block)[written:])
        os.fsync(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise


def private_open(path: str | os.PathLike[str]) -> int:
    """A file to append to that nobody else may read: it holds what people wrote."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
