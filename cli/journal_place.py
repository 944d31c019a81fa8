"""Where a journal lies: its hot store (Redis, embedded or given, or files), its archive, and the lock of its folder."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError

from ..clock import SystemClock
from ..sessions.journal.archive import Archive
from ..sessions.journal.both import BothStores
from ..sessions.journal.disk import DiskStore
from ..sessions.journal.history import History
from ..sessions.journal.redis_embedded import EmbeddedRedis
from ..sessions.journal.redis_url import RedisUnreachable, check_rights, connect
from ..sessions.journal.store import HotStore, StoreError
from ..sessions.journal.streams import Streams
from ..sessions.rooms.kept_files import KeptFiles
from ..sessions.rooms.suspend_store import SuspendStore

KEEP_S = 7 * 24 * 3600
REWRITE_S = 60.0
ROOM_KEEP_S = 3600
"""So long a room waits for the server to come back."""


class JournalKind(StrEnum):
    REDIS = "redis"
    DISK = "disk"


class FolderTaken(OSError):
    """One clear line for the person who started a second server, or cannot use a folder."""


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """As the options say it. `redis` None = the embedded one in `data`; `archive` None = a folder in `data`. `kind` of
    who serves; None = whatever is in `data`.
    """

    data: Path
    redis: str | None = None
    archive: str | None = None
    kind: JournalKind | None = None

    @property
    def on_disk(self) -> bool:
        """Whether it lies in files alone."""
        if self.kind is None:
            return self.redis is None and not (self.data / "redis").is_dir()
        return self.kind is JournalKind.DISK

    @property
    def files(self) -> Path:
        """Of what was journaled without a Redis."""
        return self.data / "journal"

    def files_too(self, store: HotStore) -> HotStore:
        """What this folder has in files beside that store."""
        beside = self.kind is None and self.redis is None and self.files.is_dir()
        return BothStores(store, DiskStore(self.files)) if beside else store

    def opened_archive(self) -> Archive:
        """Raises `ArchiveError`."""
        return Archive(self.archive if self.archive is not None else self.data / "archive")


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """`redis`: the client behind it, None for files. `revive`: starts an embedded Redis again that has died."""

    store: HotStore
    rooms: SuspendStore
    redis: Redis | None
    revive: Callable[[], None]


class FolderLock:
    """Holds a data folder for one server; the kernel lets go of it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FolderTaken(f"cannot use the data folder {shown(folder)}: {error.strerror}") from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise FolderTaken(
                f"another Worldroom server uses {shown(folder)}; give this one its own data folder"
            ) from None

    def close(self) -> None:
        os.close(self._fd)


@asynccontextmanager
async def serving(place: JournalPlace) -> AsyncIterator[OpenedStore]:
    """The store of who has the folder's lock. Raises `RedisUnreachable`, `OSError`."""
    if place.on_disk:
        rooms = SuspendStore(KeptFiles(place.data / "rooms", SystemClock()), ROOM_KEEP_S)
        yield OpenedStore(DiskStore(place.files), rooms, None, lambda: None)
        return
    own = EmbeddedRedis(place.data / "redis")
    with ExitStack() as stack:
        if place.redis is None:
            stack.callback(own.stop)
            own.start()
        redis = await (own.client() if place.redis is None else connect(place.redis))
        streams = Streams(redis, KEEP_S)
        try:
            await check_rights(redis)
            revive = own.revive if place.redis is None else lambda: None
            yield OpenedStore(place.files_too(streams), SuspendStore(redis, ROOM_KEEP_S), redis, revive)
        finally:
            await streams.close()


@asynccontextmanager
async def reading(place: JournalPlace) -> AsyncIterator[History]:
    """The journal of a Redis, of the server that runs on the folder, or of the folder when no server does.

    Raises `RedisUnreachable`, `ArchiveError`.
    """
    async with _reading_store(place) as store:
        archive = place.opened_archive() if place.archive or (place.data / "archive").is_dir() else None
        yield History(store, archive)


@asynccontextmanager
async def _reading_store(place: JournalPlace) -> AsyncIterator[HotStore]:
    if place.on_disk:
        if not (place.files.is_dir() or (place.data / "archive").is_dir() or place.archive):
            raise RedisUnreachable(f"there is no journal in {shown(place.data)}; give --data, --redis or --archive")
        yield DiskStore(place.files)
        return
    own = EmbeddedRedis(place.data / "redis")
    with ExitStack() as stack:
        if place.redis is not None:
            client = await connect(place.redis)
        else:
            try:
                client = await own.client()
            except RedisUnreachable:
                stack.callback(own.stop)
                own.start()
                client = await own.client()
        streams = Streams(client, KEEP_S)
        try:
            yield place.files_too(streams)
        finally:
            await streams.close()


async def rewrite(redis: Redis) -> None:
    """Have a Redis of our own write its append-only file anew, without what was deleted. Raises `StoreError`."""
    try:
        await redis.bgrewriteaof()
        async with asyncio.timeout(REWRITE_S):
            while await _rewriting(redis):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
    except (RedisError, TimeoutError) as error:
        raise StoreError(f"the embedded Redis did not write its file anew: {type(error).__name__}") from error


async def _rewriting(redis: Redis) -> bool:
    state = await redis.info("persistence")
    return bool(state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"])


def shown(path: Path) -> str:
    """A path as one line, whatever bytes are in it."""
    return str(path).encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
