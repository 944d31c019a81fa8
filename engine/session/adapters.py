"""One session's adapters: loads those that it asks for, says what they cost it, and holds on to the newest few.

SetAdapters(version) -> files read, attached, affordable? -> AdaptersReady(version, shares) -> conditions of a chunk
conditions that name what is not held (a restore, a replay) -> loaded before that chunk begins
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

from ...models.contract.adapters import AdapterHost, AdapterInfo, BadAdapter
from ...models.contract.conditions import AdapterShare
from .. import api
from ..caches.entry_io import MoveAdapter
from ..caches.slab_pool import PoolFull
from ..cancel import Superseded
from .checkpoint import cache_io
from .context import SessionContext

HELD_MAX = 16


class SessionAdapters:
    """`affords`: why a session whose chunks cost so many times a plain one's would not fit; None = it does."""

    def __init__(self, context: SessionContext, affords: Callable[[float], str | None]) -> None:
        self._context, self._affords = context, affords
        self._host, self._card = context.world.served.loaded.adapters, context.world.served.loaded.card.name
        self._held: OrderedDict[str, AdapterInfo] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, command: api.SetAdapters) -> None:
        """Answered by `AdaptersReady` or `Fault`."""
        task = asyncio.get_running_loop().create_task(self._load(command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def require(self, shares: Sequence[AdapterShare]) -> None:
        """Hold all that the next chunk's conditions name. Raises `BadAdapter` or `PoolFull`."""
        for share in shares:
            if share.key not in self._held:
                await self._hold(share.key)
        self._context.world.work = self._work(shares)

    async def close(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
        for key in self._held:
            self._context.services.adapters.release(self._card, key)
        self._held.clear()

    async def _load(self, command: api.SetAdapters) -> None:
        context = self._context
        try:
            shares = [AdapterShare((await self._named(ask.name)).key, ask.scale) for ask in command.stack]
            if problem := self._affords(self._work(shares)):
                self._refuse("no_compute", problem, command.version)
                return
        except Superseded:
            return
        except BadAdapter as problem:
            self._refuse("bad_adapter", str(problem), command.version)
        except PoolFull as problem:
            self._refuse("adapters_full", str(problem), command.version)
        except Exception as problem:
            context.counters.faults += 1
            self._refuse("adapter_failed", type(problem).__name__, command.version)
        else:
            infos = [self._held[share.key] for share in shares]
            rank, size = sum(info.rank for info in infos), sum(info.bytes for info in infos)
            context.emit(api.AdaptersReady(context.session, command.version, tuple(shares), rank, size))

    async def _named(self, name: str) -> AdapterInfo:
        shelf = self._context.services.adapters
        return self._keep(await shelf.hold_named(self._card, self._taking(), name, self._move))

    async def _hold(self, key: str) -> AdapterInfo:
        shelf = self._context.services.adapters
        return self._keep(await shelf.hold(self._card, self._taking(), key, self._move))

    def _taking(self) -> AdapterHost:
        if self._host is None:
            raise BadAdapter(f"card '{self._card}' takes no adapters")
        return self._host

    def _keep(self, info: AdapterInfo) -> AdapterInfo:
        """It was counted for this session: once, as its most recent one."""
        shelf = self._context.services.adapters
        if info.key in self._held:
            shelf.release(self._card, info.key)
        self._held[info.key] = info
        self._held.move_to_end(info.key)
        while len(self._held) > HELD_MAX:
            old, _ = self._held.popitem(last=False)
            shelf.release(self._card, old)
        return info

    async def _move(self, row: MoveAdapter) -> None:
        await cache_io(self._context, row, self._context.services.clock.now())

    def _work(self, shares: Sequence[AdapterShare]) -> float:
        """A chunk's work in plain chunks."""
        rank = sum(self._held[share.key].rank for share in shares)
        return 1.0 if self._host is None else 1.0 + self._host.overhead(rank)

    def _refuse(self, code: str, detail: str, version: int) -> None:
        self._context.emit(api.Fault(self._context.session, code, detail, fatal=False, adapters_version=version))
