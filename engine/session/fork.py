"""One world becomes several at a boundary: from there each goes on by itself.

source  .. n-1 | n ..       its committed entries are everybody's until they fall out of a window (`CacheSlot.share`);
branch         | n ..       a card whose runtime reads its own slot alone gets copies, through its bytes
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ..caches.entry_io import ReadEntries, WriteEntries
from ..caches.parts import PartLost
from .checkpoint import cache_io
from .context import SessionContext
from .mailbox import Mailbox
from .pacing import Pacer
from .prompts import Prompts
from .suspend import Suspension

log = logging.getLogger(__name__)


class SessionForks:
    """What becomes of one session when it is forked, and what waits for its next boundary until then.

    `unborn`: this session will be a future of another one, as soon as that one is at a boundary.
    """

    def __init__(
        self, context: SessionContext, mailbox: Mailbox, prompts: Prompts, suspension: Suspension, pacer: Pacer
    ) -> None:
        self._context, self._mailbox, self._prompts = context, mailbox, prompts
        self._suspension, self._pacer = suspension, pacer
        self._waiting: deque[tuple[Callable[[], Awaitable[None]], asyncio.Future[bool]]] = deque()
        self.unborn = False

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    async def into(self, others: "Mapping[SessionForks, int]", parted: Callable[[int, int], None]) -> bool:
        """Make those sessions, which are fresh, other futures of this one at its next boundary; each has the noise of
        the branch that is given. `parted` hears the chunk before which they part, and before which the checkpoint is
        that they share (0: there is none); then they go on.

        False when this session was closed before. Raises what making one raises.
        """

        async def all_of_them() -> None:
            for other, noise in others.items():
                await part(self._context, other._context, noise)
            mark = await lend(self._context, [other._context.session for other in others])
            parted(self._context.world.number, mark)
            for other in others:
                other._go_on_as(self)

        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((all_of_them, answer))
        self._mailbox.interrupt()
        return await answer

    async def carry_out(self) -> None:
        """Call at a boundary, while nothing of the session runs."""
        while self._waiting:
            do, answer = self._waiting.popleft()
            try:
                await do()
            except Exception as problem:
                answer.set_exception(problem)
            else:
                answer.set_result(True)

    def give_up(self) -> None:
        """The session is closed."""
        while self._waiting:
            self._waiting.popleft()[1].set_result(False)

    def _go_on_as(self, source: "SessionForks") -> None:
        world = self._context.world
        self._prompts.hold_those_of(source._prompts)
        self._suspension.over()
        self.unborn = False
        self._pacer.part_from(source._pacer, world.picture, world.number - 1, self._mailbox.epoch)
        self._mailbox.resume()


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
