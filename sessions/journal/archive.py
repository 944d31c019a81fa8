"""The cold part of the journal: parts of sessions as compressed msgpack, in a folder or wherever fsspec reaches.

    <root>/<session>/0000000001-0000002048.part     zlib(msgpack(Part)), written once
    <root>/<session>/index.json                     which parts there are, written after them
    <root>/<session>/<folder>/<name>                what belongs to the session beside its journal

A part that the index does not name does not exist: it is written again, under the same name with the same content.
Blocking: called off the event loop.
"""

import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import fsspec
import msgspec

from .entry import ratings, type_of
from .events import SessionOpened
from .store import StoredEntry

VERSION = 1


class ArchiveError(OSError):
    """The archive did not take or give something; one line, no secrets."""


class PartInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entries `first` to `last`, from `begun` to `ended` (Unix seconds), in a file of `size` bytes."""

    first: int
    last: int
    begun: float
    ended: float
    size: int
    sha256: str


class Index(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the archive holds of one session. Entries up to `cut` were given up by retention.

    `room` and `card` as the session was opened at `opened`. `counts`: entries by type, archived ones, cut ones too.
    `likes`, `dislikes`: among them. `whole`: the session has ended, and nothing of it is elsewhere. `origin`: the
    session that it goes on from, '' = it begins; None = not known, of an earlier version.
    """

    version: int
    session: str
    room: str
    card: str
    opened: float
    parts: tuple[PartInfo, ...] = ()
    cut: int = 0
    whole: bool = False
    counts: Mapping[str, int] = {}
    likes: int = 0
    dislikes: int = 0
    origin: str | None = None

    def ended_before(self, at: float) -> bool:
        """Whether it ended then, and is here whole."""
        return self.whole and bool(self.parts) and self.ended < at

    @classmethod
    def of(cls, session: str, at: float, opened: SessionOpened) -> "Index":
        """Of a session of which nothing is archived yet."""
        origin = "" if opened.origin is None else opened.origin.session
        return cls(VERSION, session, opened.room, opened.card, at, origin=origin)

    @property
    def last(self) -> int:
        """Entries up to this number have been archived."""
        return self.parts[-1].last if self.parts else self.cut

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def ended(self) -> float:
        return self.parts[-1].ended if self.parts else self.opened


class _Row(msgspec.Struct, frozen=True, array_like=True):
    number: int
    at: float
    body: bytes


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    session: str
    rows: tuple[_Row, ...]


class Archive:
    """`place`: a folder, or a URL that fsspec knows (s3://bucket/prefix, memory://...)."""

    def __init__(self, place: str | Path) -> None:
        try:
            self._fs, root = fsspec.core.url_to_fs(str(place))
        except (ValueError, ImportError) as error:
            raise ArchiveError(f"cannot archive to {_shown(place)}: {type(error).__name__}: {error}") from None
        self._root = str(root).rstrip("/")
        self._local = not _is_url(place)
        if self._local:
            Path(self._root).mkdir(parents=True, exist_ok=True, mode=0o700)

    def index(self, session: str) -> Index | None:
        try:
            data = self._fs.cat_file(self._path(session, "index.json"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ArchiveError(f"the archive did not give session {session}: {error}") from error
        try:
            index = msgspec.json.decode(data, type=Index)
        except msgspec.MsgspecError as error:
            raise ArchiveError(f"the archive's index of session {session} cannot be read: {error}") from None
        if index.version != VERSION:
            raise ArchiveError(
                f"session {session} was archived by version {index.version}; this Worldroom reads {VERSION}"
            )
        return index

    def put_index(self, index: Index) -> None:
        self._put(self._path(index.session, "index.json"), msgspec.json.encode(index))

    def add(self, index: Index, entries: Sequence[StoredEntry], whole: bool) -> Index:
        """Write a part, then the index that names it; the new index. Entries the index has are left out."""
        fresh = [entry for entry in entries if entry.number > index.last]
        counted = Counter(index.counts)
        counted.update(type_of(entry.body) for entry in fresh)
        likes, dislikes = ratings(entry.body for entry in fresh)
        index = msgspec.structs.replace(
            index, whole=whole, counts=counted, likes=index.likes + likes, dislikes=index.dislikes + dislikes
        )
        if fresh:
            index = msgspec.structs.replace(index, parts=(*index.parts, self._put_part(fresh)))
        self.put_index(index)
        return index

    def part(self, session: str, info: PartInfo) -> list[StoredEntry]:
        """The entries of one part, oldest first."""
        return [StoredEntry(session, row.number, row.at, row.body) for row in self._part(session, info).rows]

    def cut(self, index: Index, upto: int) -> Index:
        """Give up the parts that end at or before `upto`; the index says so before they are gone."""
        gone = [part for part in index.parts if part.last <= upto]
        if not gone:
            return index
        kept = index.parts[len(gone) :]
        index = msgspec.structs.replace(index, parts=kept, cut=gone[-1].last)
        self.put_index(index)
        for info in gone:
            self._remove(self._part_path(index.session, info))
        return index

    def replace(self, index: Index, rewritten: Iterable[list[StoredEntry]]) -> Index:
        """Write every part anew (redaction); `rewritten` gives the entries of each. The old bytes are gone after it."""
        index = msgspec.structs.replace(index, parts=tuple(self._put_part(entries) for entries in rewritten))
        self.put_index(index)
        return index

    def sessions(self) -> list[str]:
        try:
            found = self._fs.ls(self._root, detail=False, refresh=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ArchiveError(f"the archive did not list its sessions: {error}") from error
        return sorted(unquote(str(path).rstrip("/").rpartition("/")[2]) for path in found)

    def delete(self, session: str) -> int:
        """Remove everything of a session; how many bytes that were."""
        folder = self._path(session, "")
        size = self._bytes_in(folder)
        if self._fs.exists(folder):
            self._fs.rm(folder, recursive=True)
        return size

    def put_beside(self, session: str, folder: str, name: str, data: bytes) -> None:
        self._put(self._path(session, f"{folder}/{name}"), data)

    def beside(self, session: str, folder: str, name: str) -> bytes | None:
        """None where there is no such file."""
        try:
            return bytes(self._fs.cat_file(self._path(session, f"{folder}/{name}")))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ArchiveError(f"the archive did not give {name}: {type(error).__name__}") from error

    def bytes_beside(self, session: str, folder: str) -> int:
        """Of all that is in a folder of a session."""
        return self._bytes_in(self._path(session, folder))

    def _bytes_in(self, folder: str) -> int:
        try:
            found = self._fs.find(folder, detail=True)
            return sum(info["size"] or 0 for info in found.values())
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise ArchiveError(f"the archive did not list a folder: {type(error).__name__}") from error

    def check(self, index: Index) -> list[str]:
        """What is wrong with a session's parts, one line each."""
        wrong, expected = [], index.cut + 1
        for info in index.parts:
            if info.first != expected:
                wrong.append(f"entries {expected} to {info.first - 1} are missing")
            expected = info.last + 1
            try:
                numbers = [row.number for row in self._part(index.session, info).rows]
            except ArchiveError as error:
                wrong.append(str(error))
                continue
            if numbers != list(range(info.first, info.last + 1)):
                wrong.append(f"part {info.first}-{info.last} does not hold every entry once")
        return wrong

    def _put_part(self, entries: Sequence[StoredEntry]) -> PartInfo:
        first, last = entries[0], entries[-1]
        rows = tuple(_Row(entry.number, entry.at, entry.body) for entry in entries)
        data = zlib.compress(msgspec.msgpack.encode(Part(VERSION, first.session, rows)), 6)
        info = PartInfo(first.number, last.number, first.at, last.at, len(data), hashlib.sha256(data).hexdigest())
        self._put(self._part_path(first.session, info), data)
        return info

    def _part(self, session: str, info: PartInfo) -> Part:
        name = f"part {info.first}-{info.last} of session {session}"
        try:
            data = self._fs.cat_file(self._part_path(session, info))
        except OSError as error:
            raise ArchiveError(f"{name} cannot be read: {type(error).__name__}") from error
        if hashlib.sha256(data).hexdigest() != info.sha256:
            raise ArchiveError(f"{name} does not match its checksum")
        try:
            return msgspec.msgpack.decode(zlib.decompress(data), type=Part)
        except (msgspec.MsgspecError, zlib.error) as error:
            raise ArchiveError(f"{name} cannot be read: {error}") from error

    def _put(self, path: str, data: bytes) -> None:
        """Whole or not at all: object stores are so by themselves, a folder by a rename."""
        try:
            if not self._local:
                self._fs.pipe_file(path, data)
                return
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = target.with_name(target.name + ".new")
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, target)
        except OSError as error:
            raise ArchiveError(f"the archive did not take {len(data)} bytes: {error}") from error

    def _remove(self, path: str) -> None:
        try:
            self._fs.rm_file(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ArchiveError(f"the archive did not remove a part: {error}") from error

    def _part_path(self, session: str, info: PartInfo) -> str:
        return self._path(session, f"{info.first:010}-{info.last:010}.part")

    def _path(self, session: str, name: str) -> str:
        return f"{self._root}/{quote(session, safe='')}/{name}"


def _is_url(place: str | Path) -> bool:
    return isinstance(place, str) and "://" in place and not place.startswith("file://")


def _shown(place: str | Path) -> str:
    """Without what may be a secret in it."""
    scheme, found, rest = str(place).partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else str(place)
