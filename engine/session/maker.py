"""Makes a session's chunks: one at a time, except that a released one decodes while the next is made.

boundary: a chunk has ended, or it was released and only its pictures are missing
"""

import asyncio
from typing import Any

from .. import api
from ..cancel import CancelScope, Superseded
from ..drive import DecodeOverlap
from .checkpoint import Checkpoints
from .chunk import EngineChunk
from .context import SessionContext
from .driver import ChunkDriver
from .faults import Faults
from .mailbox import Mailbox
from .pacing import Pacer


class ChunkMaker:
    """See the module docstring."""

    def __init__(
        self,
        context: SessionContext,
        driver: ChunkDriver,
        pacer: Pacer,
        checkpoints: Checkpoints,
        mailbox: Mailbox,
        faults: Faults,
    ) -> None:
        self._context, self._world, self._services = context, context.world, context.services
        self._driver, self._pacer, self._checkpoints = driver, pacer, checkpoints
        self._mailbox, self._faults = mailbox, faults
        self._last: EngineChunk | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._release = self._should_release if self._world.served.decodes_beside else lambda: False

    def begin(self, command: api.Begin, due: float, asked: float) -> EngineChunk:
        """The next chunk, under conditions that were due at `due` and asked for at `asked`."""
        world, last, now = self._world, self._last, self._services.clock.now()
        deadline, made_by, latest_start = self._pacer.begin(now - due)
        same_world = last is not None and last.generation == world.generation
        overlap = DecodeOverlap(self._release, self._go_on, last.overlap if last is not None else None, same_world)
        scope = CancelScope(self._context.scope)
        times = now, deadline, made_by, latest_start, asked
        return EngineChunk(
            world.number, command.conditions, scope, *times, world.generation, overlap=overlap, keep=command.keep
        )

    async def make(self, chunk: EngineChunk) -> None:
        """Make it up to the boundary behind it; there restarts and checkpoints have their place."""
        self._last = chunk
        # A task of its own: once released, the chunk decodes while the next one is made. asyncio keeps no task alive.
        task = asyncio.get_running_loop().create_task(self._run(chunk))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await chunk.overlap.boundary.wait()
        self._mailbox.chunk = None
        self._context.scope.check()
        self._world.begin_restart()
        # A world whose last chunk is still decoding is not whole: no checkpoint of it.
        if not chunk.overlap.released and self._checkpoints.due:
            self._checkpoints.boundary(self._pacer.due())

    async def settled(self) -> None:
        """Wait until the last chunk has ended: until then it reads the slot, or its pictures are missing."""
        if self._last is not None:
            await self._last.overlap.ended.wait()

    async def _run(self, chunk: EngineChunk) -> None:
        """Drive one chunk; whatever happens to it ends here. Order at its end: the world has moved on (`drive`), then
        its events are told, then its overlap ends and lets whoever waits for it go on.
        """
        carry = None
        try:
            outcome = await self._driver.drive(chunk)
        except Exception as problem:
            await chunk.overlap.wait_decoded()  # events of the chunk before come first
            self._failed(chunk, problem)
        else:
            carry = outcome.carry
            self._world.lived.append(api.Begin(self._world.session, chunk.number, chunk.conditions))
            self._pacer.take(chunk, outcome, self._mailbox.epoch)
        finally:
            chunk.overlap.end(carry)

    def _should_release(self) -> bool:
        """Whether the next chunk would begin late if it waited for the pictures of this one.

        Where there is time it waits: then its input is newer. A checkpoint that is due needs a whole world.
        """
        decode = self._world.served.aux_seconds(self._services.costs, self._world.steps)
        if self._mailbox.paused or self._checkpoints.due:
            return False
        return self._pacer.due(after=1) < self._services.clock.now() + decode

    def _go_on(self, carry: Any) -> None:
        """The chunk is released: from here a redirect no longer cancels it, because it is committed."""
        self._world.go_on(carry)
        self._pacer.released()
        self._mailbox.chunk = None

    def _failed(self, chunk: EngineChunk, problem: Exception) -> None:
        """A chunk that was released is done all the same, though nobody sees it."""
        session, released = self._world.session, chunk.overlap.released
        if not isinstance(problem, Superseded):
            if released:
                self._world.lived.append(api.Begin(session, chunk.number, chunk.conditions))
                self._context.emit(chunk.done(session, None, 0, late=False))
            self._faults.chunk_failed(chunk.number, problem, halt=released)
        elif not released:  # else the session ends
            self._context.counters.cancelled += 1
            self._context.emit(api.ChunkCancelled(session, chunk.number, chunk.conditions.epoch))
