"""Where suspended rooms wait for the next start: Redis, or files where there is none.

    room:<name>   who had which seat, the wheel, the prompts, where the journal ends       (JSON)
    world:<name>  what the engine gave for the world; nobody here knows its inside         (bytes)
    note:<name>   how a room stands that lives: as `room`, and its world is in the journal (JSON)

All are forgotten after `keep_s`. A world that is too large ends with its server, and the log says so. What
was suspended goes before what was only noted.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisClusterException, RedisError

from .kept_files import KeptFiles
from .room_record import RecordUnreadable, RoomRecord, read_record

PREFIX = "worldroom:suspended:"
WORLD_BYTES_MAX = 64 << 20
FAULTS = (RedisError, RedisClusterException, OSError)


@dataclass(frozen=True, slots=True)
class SuspendedRoom:
    """A room with its world; b'' = its server was killed, and the world is what the journal says."""

    record: RoomRecord
    world: bytes


class SuspendStoreError(OSError):
    """A room was not taken or given."""


class SuspendStore:
    """See the module docstring."""

    def __init__(self, redis: Redis | KeptFiles, keep_s: int) -> None:
        self._redis = redis
        self._keep_s = keep_s

    async def put(self, suspended: SuspendedRoom) -> None:
        """Raises `SuspendStoreError`."""
        room, size = suspended.record.room, len(suspended.world)
        if size > WORLD_BYTES_MAX:
            raise SuspendStoreError(f"room '{room}': its world has {size} bytes, at most {WORLD_BYTES_MAX} are kept")
        try:
            # The room last: it says that the world is there.
            await self._redis.set(f"{PREFIX}world:{room}", suspended.world, ex=self._keep_s)
            await self._redis.set(f"{PREFIX}room:{room}", msgspec.json.encode(suspended.record), ex=self._keep_s)
            await self._redis.delete(f"{PREFIX}note:{room}")
        except FAULTS as error:
            raise SuspendStoreError(f"room '{room}': its world was not written down: {error}") from error

    async def note(self, record: RoomRecord) -> None:
        """How a room stands that lives: should its server be killed, its world is made again from the journal. Raises
        `SuspendStoreError`."""
        try:
            await self._redis.set(f"{PREFIX}note:{record.room}", msgspec.json.encode(record), ex=self._keep_s)
        except FAULTS as error:
            raise SuspendStoreError(f"room '{record.room}': it was not noted: {error}") from error

    async def restored(self, record: RoomRecord) -> None:
        """The room lives again: it is noted before its suspended world goes, so that at no moment there is neither.
        Raises `SuspendStoreError`."""
        await self.note(record)
        await self._delete(record.room, "room", "world")

    async def forget_note(self, room: str) -> None:
        """The room lives no more. Raises `SuspendStoreError`."""
        await self._delete(room, "note")

    async def find(self, room: str, cards: Collection[str]) -> SuspendedRoom | None:
        """The room of that name and one of these cards, suspended or only noted. Raises `SuspendStoreError`, also for
        one that another version wrote.
        """
        try:
            kinds = [f"{PREFIX}{kind}:{room}" for kind in ("room", "world", "note")]
            record, world, note = [cast("bytes | None", await self._redis.get(key)) for key in kinds]
            for data, with_world in ((record, world), (note, None)):
                if data is not None:
                    found = SuspendedRoom(read_record(data), with_world or b"")
                    if found.record.session.card in cards:
                        return found
            return None
        except (*FAULTS, RecordUnreadable) as error:
            raise SuspendStoreError(f"room '{room}': the suspended room cannot be read: {error}") from error

    async def forget(self, room: str) -> None:
        """It never will be restored. Raises `SuspendStoreError`."""
        await self._delete(room, "room", "world", "note")

    async def _delete(self, room: str, *kinds: str) -> None:
        try:
            for kind in kinds:
                await self._redis.delete(f"{PREFIX}{kind}:{room}")
        except FAULTS as error:
            raise SuspendStoreError(f"room '{room}': it was not forgotten: {error}") from error
