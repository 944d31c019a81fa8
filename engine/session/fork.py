"""One world becomes several at a boundary: from there each goes on by itself.

source  .. n-1 | n ..       its committed entries are everybody's until they fall out of a window (`CacheSlot.share`);
branch         | n ..       a card whose runtime reads its own slot alone gets copies, through its bytes
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from ..caches.entry_io import ReadEntries, WriteEntries
from ..caches.parts import PartLost
from .checkpoint import cache_io
from .context import SessionContext

log = logging.getLogger(__name__)

Part = Callable[[], Awaitable[None]]


class Partings:
    """What waits for a session's next boundary; each is answered with whether it happened."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Part, asyncio.Future[bool]]] = deque()

    def ask(self, part: Part) -> "asyncio.Future[bool]":
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.waiting.append((part, answer))
        return answer

    async def carry_out(self) -> None:
        """Call at a boundary, while nothing of the session runs."""
        while self.waiting:
            part, answer = self.waiting.popleft()
            try:
                await part()
            except Exception as problem:
                answer.set_exception(problem)
            else:
                answer.set_result(True)

    def give_up(self) -> None:
        """The session is closed."""
        while self.waiting:
            self.waiting.popleft()[1].set_result(False)


async def part(source: SessionContext, into: SessionContext, noise: int) -> None:
    """Make a fresh world what `source` is at this boundary, with the noise of another branch or of the same.

    Raises `slab_pool.PoolFull` and what a step raises.
    """
    world, other = source.world, into.world
    if other.slot is None:
        other.take_slot()
    assert world.slot is not None and other.slot is not None, "a world that is forked is in its slot"
    entries = world.slot.committed
    if world.served.loaded.shares or not entries:
        other.slot.share(world.slot)
    else:
        now = source.services.clock.now()
        other.slot.restore(world.slot.count)
        read = await cache_io(source, ReadEntries(world.slot.number, entries), now)
        data, extra = read[: len(entries)], read[len(entries) :]
        row = WriteEntries(other.slot.number, data, extra=extra, entries=other.slot.committed)
        await cache_io(into, row, now)
    other.part_from(world, noise)


async def lend(source: SessionContext, names: Sequence[str]) -> int:
    """The newest checkpoint of a session is theirs too, without a copy; before which chunk it is, 0 = there is none."""
    store, encoders = source.services.store, source.services.encoders
    if store is None:
        return 0
    try:
        return await asyncio.get_running_loop().run_in_executor(encoders, store.lend, source.session, names)
    except (OSError, PartLost) as problem:
        log.warning("futures of session %s have no checkpoint yet: %s", source.session, problem)
        return 0
