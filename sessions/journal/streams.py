"""One Redis stream per session: entries in, entries out, each exactly once.

The entry's number is its stream ID (`number-0`), so writing an entry twice is seen by Redis itself. A batch is one
script call: it skips what the stream already has and stops at the first error, so no number is ever passed over.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from .events import JournalEvent, SessionOpened
from .spool import SpoolEntry

PREFIX = "worldroom:session:"

_APPEND = """
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


class StreamError(OSError):
    """Redis did not take or give what was asked; the entries are still the caller's."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A journaled session; `at`: when it was opened, Unix seconds."""

    session: str
    opened: SessionOpened
    at: float
    events: int


class Streams:
    """The streams of all sessions in one Redis."""

    def __init__(self, redis: Redis, keep_s: int) -> None:
        self._redis = redis
        self._keep_s = keep_s

    async def append(self, entries: Sequence[SpoolEntry]) -> int:
        """Write entries in order; how many were new. Raises `StreamError` (then repeat the same entries)."""
        added = 0
        try:
            for session, group in groupby(sorted(entries, key=_order), key=lambda entry: entry.session):
                added += await self._append_one(session, list(group))
        except (RedisError, OSError) as error:
            raise StreamError(f"journal: Redis did not take {len(entries)} entries: {error}") from error
        return added

    async def read(self, session: str, batch: int = 1000) -> AsyncIterator[tuple[int, float, JournalEvent]]:
        """(number, Unix seconds, event) of one session from its first event on."""
        last = "-"
        while True:
            answer = await self._redis.xrange(PREFIX + session, min=last, max="+", count=batch)
            rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", answer)
            for key, fields in rows:
                number = int(key.split(b"-")[0])
                yield number, float(fields[b"at"]), msgspec.json.decode(fields[b"event"], type=JournalEvent)
            if len(rows) < batch:
                return
            last = f"({rows[-1][0].decode()}"

    async def sessions(self) -> list[Listed]:
        """Every journaled session, newest first. Raises `StreamError`."""
        try:
            keys = [key async for key in self._redis.scan_iter(match=f"{PREFIX}*", count=1000)]
            listed = [await self._listed(key) for key in keys]
        except (RedisError, OSError) as error:
            raise StreamError(f"journal: Redis did not list its sessions: {error}") from error
        return sorted((entry for entry in listed if entry is not None), key=lambda entry: -entry.at)

    async def _listed(self, key: bytes) -> Listed | None:
        """None for a stream that has lost its beginning."""
        answer = await self._redis.xrange(key, count=1)
        for _, fields in cast("list[tuple[bytes, dict[bytes, bytes]]]", answer):
            opened = msgspec.json.decode(fields[b"event"], type=JournalEvent)
            if isinstance(opened, SessionOpened):
                session = key.decode().removeprefix(PREFIX)
                return Listed(session, opened, float(fields[b"at"]), int(await self._redis.xlen(key)))
        return None

    async def close(self) -> None:
        await self._redis.aclose()

    async def _append_one(self, session: str, entries: Sequence[SpoolEntry]) -> int:
        arguments: list[str | bytes | int | float] = [self._keep_s]
        for entry in entries:
            arguments += [entry.number, repr(entry.at), entry.body]
        return int(await self._redis.eval(_APPEND, 1, PREFIX + session, *arguments))


def _order(entry: SpoolEntry) -> tuple[str, int]:
    return entry.session, entry.number
