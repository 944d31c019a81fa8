"""Hot parts of a folder that was served with a Redis and without one, as one store: a session lies in one of them."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from .store import HotStore, StoredEntry


class BothStores:
    """What is of no session yet goes to the first."""

    def __init__(self, first: HotStore, second: HotStore) -> None:
        self._first, self._second = first, second

    async def append(self, entries: Sequence[StoredEntry]) -> int:
        elsewhere = {session for session in {entry.session for entry in entries} if await self._second.last(session)}
        there = [entry for entry in entries if entry.session in elsewhere]
        here = [entry for entry in entries if entry.session not in elsewhere]
        added = await self._first.append(here) if here else 0
        return added + (await self._second.append(there) if there else 0)

    async def rows(self, session: str, after: int = 0) -> AsyncIterator[StoredEntry]:
        async for row in (await self._of(session)).rows(session, after):
            yield row

    async def names(self) -> list[str]:
        return [*dict.fromkeys([*await self._first.names(), *await self._second.names()])]

    async def last(self, session: str) -> StoredEntry | None:
        return await (await self._of(session)).last(session)

    async def trim(self, session: str, upto: int) -> None:
        await (await self._of(session)).trim(session, upto)

    async def drop(self, session: str) -> None:
        await self._first.drop(session)
        await self._second.drop(session)

    async def close(self) -> None:
        await asyncio.gather(self._first.close(), self._second.close())

    async def _of(self, session: str) -> HotStore:
        return self._first if await self._second.last(session) is None else self._second
