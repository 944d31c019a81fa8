"""One Redis stream per session: the hot part of the journal where there is a Redis.

The entry's number is its stream ID (`number-0`), so writing an entry twice is seen by Redis itself. A batch is one
script call a session, all of them in one round trip: it skips what the stream already has and stops at the first
error, so no number is ever passed over.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import groupby
from typing import cast

from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError, ReadOnlyError, RedisClusterException, RedisError

from .store import StoredEntry, StoreError

PREFIX = "worldroom:session:"
BATCH = 250
FAULTS = (RedisError, RedisClusterException, OSError)

APPEND = """
local tip = 0
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if newest[1] then tip = tonumber(string.match(newest[1][1], '^%d+')) end
local added = 0
for i = 2, #ARGV, 3 do
  if tonumber(ARGV[i]) > tip then
    redis.call('XADD', KEYS[1], ARGV[i] .. '-0', 'at', ARGV[i + 1], 'event', ARGV[i + 2])
    added = added + 1
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return added
"""


class Streams:
    """The streams of all sessions in one Redis. A stream that nobody adds to for `keep_s` is forgotten."""

    def __init__(self, redis: Redis, keep_s: int) -> None:
        self._redis = redis
        self._keep_s = keep_s

    async def append(self, entries: Sequence[StoredEntry]) -> int:
        try:
            pipe = self._redis.pipeline(transaction=False)
            for session, group in groupby(sorted(entries, key=_order), key=lambda entry: entry.session):
                pipe.eval(APPEND, 1, key_of(session), *self._arguments(group))
            return sum(int(added) for added in await pipe.execute())
        except FAULTS as error:
            raise StoreError(f"journal: Redis did not take {len(entries)} entries: {said(error)}") from error

    async def rows(self, session: str, after: int = 0) -> AsyncIterator[StoredEntry]:
        last = f"({after}-0" if after else "-"
        while True:
            try:
                answer = await self._redis.xrange(key_of(session), min=last, max="+", count=BATCH)
            except FAULTS as error:
                raise StoreError(f"journal: Redis did not give session {session}: {said(error)}") from error
            rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", answer)
            for key, fields in rows:
                yield _row(session, key, fields)
            if len(rows) < BATCH:
                return
            last = f"({rows[-1][0].decode()}"

    async def names(self) -> list[str]:
        try:
            keys = [key async for key in self._redis.scan_iter(match=f"{PREFIX}*", count=1000)]
        except FAULTS as error:
            raise StoreError(f"journal: Redis did not list its sessions: {said(error)}") from error
        return [name_of(key) for key in keys]

    async def last(self, session: str) -> StoredEntry | None:
        try:
            answer = await self._redis.xrevrange(key_of(session), count=1)
        except FAULTS as error:
            raise StoreError(f"journal: Redis did not give session {session}: {said(error)}") from error
        rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", answer)
        return _row(session, *rows[0]) if rows else None

    async def trim(self, session: str, upto: int) -> None:
        newest = await self.last(session)
        if newest is None:
            return
        try:
            await self._redis.xtrim(key_of(session), minid=f"{min(upto + 1, newest.number)}-0", approximate=False)
        except FAULTS as error:
            raise StoreError(f"journal: Redis did not trim session {session}: {said(error)}") from error

    async def drop(self, session: str) -> None:
        try:
            await self._redis.delete(key_of(session))
        except FAULTS as error:
            raise StoreError(f"journal: Redis did not forget session {session}: {said(error)}") from error

    async def memory(self, session: str) -> int:
        """Bytes that Redis spends on a session; 0 when it has none or does not tell."""
        try:
            return int(await self._redis.memory_usage(key_of(session), samples=0) or 0)
        except FAULTS:
            return 0

    async def close(self) -> None:
        await self._redis.aclose()

    def _arguments(self, entries: Iterable[StoredEntry]) -> list[str | bytes | int]:
        arguments: list[str | bytes | int] = [self._keep_s]
        for entry in entries:
            arguments += [entry.number, repr(entry.at), entry.body]
        return arguments


def key_of(session: str) -> str:
    """The braces are a cluster's hash tag: everything of one session lies on one node."""
    return f"{PREFIX}{{{session}}}"


def name_of(key: bytes) -> str:
    return key.decode().removeprefix(PREFIX)[1:-1]


def said(error: Exception) -> str:
    """What Redis answered, for a person."""
    if isinstance(error, OutOfMemoryError):
        return "it is full (maxmemory with noeviction)"
    if isinstance(error, ReadOnlyError):
        return "it is a read-only replica"
    return str(error) or type(error).__name__


def _row(session: str, key: bytes, fields: dict[bytes, bytes]) -> StoredEntry:
    return StoredEntry(session, int(key.split(b"-")[0]), float(fields[b"at"]), fields[b"event"])


def _order(entry: StoredEntry) -> tuple[str, int]:
    return entry.session, entry.number
