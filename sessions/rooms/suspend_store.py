"""Rooms that outlive their server: put aside in Redis when it stops, brought back by the first who comes again.

    room:<name>   who had which place, the wheel, the prompts, where the journal ends      (JSON)
    world:<name>  what the engine gave for the world; nobody here knows its inside         (bytes)

Both are forgotten after `keep_s`. A world that is too large for Redis ends with its server, and the log says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from ...engine.api import Event, Opened, Refused
from ..session.prompts import PromptsRecord

PREFIX = "worldroom:aside:"
WORLD_BYTES_MAX = 64 << 20


class SeatRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    participant: str
    token: str
    name: str


class SessionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`journaled`: the number of its last event. `paused`: the driver had stopped the world."""

    name: str
    card: str
    weights: str
    seed: int
    epoch: int
    chunk: int
    paused: bool
    journaled: int
    prompts: PromptsRecord


class RoomRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    room: str
    driver: str | None
    places: tuple[SeatRecord, ...]
    session: SessionRecord


class WorldKeeper(Protocol):
    """The engine, as far as it can put sessions aside."""

    def keep(self, session: str) -> bytes | None:
        """A session that stands still, as bytes for `take_over`; None when its past is not whole."""
        ...

    async def take_over(self, kept: bytes, events: Callable[[Event], None]) -> Opened | Refused:
        """Make it a session again, paused. Raises ValueError when these bytes are none of its own."""
        ...


@dataclass(frozen=True, slots=True)
class SuspendedRoom:
    """A room with its world, as it was put aside."""

    record: RoomRecord
    world: bytes


class SuspendStoreError(OSError):
    """Redis did not take or give a room."""


class SuspendStore:
    """See the module docstring."""

    def __init__(self, redis: Redis, keep_s: int) -> None:
        self._redis = redis
        self._keep_s = keep_s

    async def put(self, aside: SuspendedRoom) -> None:
        """Raises `SuspendStoreError`."""
        room, size = aside.record.room, len(aside.world)
        if size > WORLD_BYTES_MAX:
            raise SuspendStoreError(f"room '{room}': its world has {size} bytes, at most {WORLD_BYTES_MAX} are kept")
        try:
            async with self._redis.pipeline(transaction=True) as both:
                both.set(f"{PREFIX}room:{room}", msgspec.json.encode(aside.record), ex=self._keep_s)
                both.set(f"{PREFIX}world:{room}", aside.world, ex=self._keep_s)
                await both.execute()
        except (RedisError, OSError) as error:
            raise SuspendStoreError(f"room '{room}': Redis did not take its world: {error}") from error

    async def find(self, room: str) -> SuspendedRoom | None:
        """The room of that name, if one was put aside. Raises `SuspendStoreError`, also for one of another version."""
        try:
            answer = await self._redis.mget(f"{PREFIX}room:{room}", f"{PREFIX}world:{room}")
            record, world = cast("list[bytes | None]", answer)
            if record is None or world is None:
                return None
            return SuspendedRoom(msgspec.json.decode(record, type=RoomRecord), world)
        except (RedisError, OSError, msgspec.MsgspecError) as error:
            raise SuspendStoreError(f"room '{room}': what was put aside cannot be read: {error}") from error

    async def forget(self, room: str) -> None:
        """It lives again, or never will. Raises `SuspendStoreError`."""
        try:
            await self._redis.delete(f"{PREFIX}room:{room}", f"{PREFIX}world:{room}")
        except (RedisError, OSError) as error:
            raise SuspendStoreError(f"room '{room}': Redis did not forget it: {error}") from error
