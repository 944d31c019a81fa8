"""A paused session gives its slot and its share of the device to others, and takes them back when it goes on.

    paused for a while --> snapshot in the folder (memory, later disk), slot free --resumed, and it fits--> restored

A session that comes from a worker that ended takes the same way in: it is suspended until it is made again.
"""

import asyncio
import logging
from collections.abc import Callable

from ...models.shared import serial
from .. import api
from ..caches.parts import PartLost
from ..caches.snapshot import SnapshotMismatch
from ..caches.store import SnapshotFolder
from ..cancel import Superseded
from .checkpoint import capture, put
from .context import SessionContext
from .driver import ChunkDriver
from .prompts import Prompts
from .restore import restore
from .resume_state import ResumeState

log = logging.getLogger(__name__)

LOOK = 0.1
RETIRE_AFTER = 120.0
"""Seconds after which the snapshot of a suspended session goes from memory to disk, if there is one."""


class Suspension:
    """`fits` says whether the session's slot and share are free now. `resume_state`: what the session was when it was
    suspended, None while it is not.
    """

    def __init__(
        self, context: SessionContext, prompts: Prompts, driver: ChunkDriver, fits: Callable[[], bool]
    ) -> None:
        self._context, self._world, self._services = context, context.world, context.services
        self._prompts, self._driver, self._fits = prompts, driver, fits
        self.resume_state: ResumeState | None = None
        self.stepped_back = False
        """It was suspended because its chunks were bad: to be made again from an earlier checkpoint."""
        self._snapshot: bytes | None = None
        self._retiring: asyncio.TimerHandle | None = None

    def keep(self, resume_state: ResumeState, snapshot: bytes | None) -> None:
        """Keep what this session is until it is restored."""
        self.resume_state, self._snapshot = resume_state, snapshot

    def over(self) -> None:
        """It came from elsewhere, and is a world now."""
        self.resume_state = self._snapshot = None
        self.stepped_back = False

    async def suspend(self) -> bool:
        """Write the world down and leave its slot. False when that was not possible: then the session keeps its slot.

        Call at a boundary, and let nothing run meanwhile.
        """
        services, session, store = self._services, self._context.session, self._services.store
        world, loop, data = self._world, asyncio.get_running_loop(), None
        if not world.served.portable:
            return False
        try:
            taken = await capture(self._context, self._prompts, services.clock.now())
            if taken is None:
                return False
            if store is None:
                data = await loop.run_in_executor(services.encoders, taken.whole, world.served.loaded)
            else:
                await loop.run_in_executor(services.encoders, put, world, taken, store, None)
        except Superseded:
            return False
        except Exception:
            log.exception("session %s cannot be suspended", session)
            return False
        if store is not None:
            services.checkpointed(session, taken.head.number, taken.head.epoch)
        self.keep(ResumeState(self._context.opening, progress=api.Progress(chunk=taken.head.number)), data)
        self._world.leave_slot()
        self._retiring = loop.call_later(RETIRE_AFTER, self._retire)
        return True

    async def step_back(self, tries: int) -> bool:
        """Leave the slot, to be made again from the last checkpoint (`tries` 1) or an earlier one. False when there is
        none from which on everything is known: then the world stays as it is.

        Call at a boundary, and let nothing run meanwhile.
        """
        store, world, loop = self._services.store, self._world, asyncio.get_running_loop()
        if store is None or not world.served.portable:
            return False
        marks = await loop.run_in_executor(self._services.encoders, store.marks, world.session)
        end = world.number if self.resume_state is None else self.resume_state.progress.chunk
        steps = world.between(marks[-tries], end) if len(marks) >= tries else None
        if steps is None:
            return False
        marked = await loop.run_in_executor(self._services.encoders, store.marked, world.session, marks[-tries])
        if marked is None:
            return False
        log.warning("session %s is made again from chunk %d on, up to %d", world.session, marked[0], end)
        self.keep(ResumeState(self._context.opening, steps, progress=api.Progress(chunk=end)), marked[1])
        self.stepped_back = True
        world.leave_slot()
        return True

    def stop_retiring(self) -> None:
        """It is restored or closed: a snapshot that is in memory stays there."""
        if self._retiring is not None:
            self._retiring.cancel()

    async def restore(self) -> ResumeState:
        """Wait until it fits, then make the world again. Raises `Superseded` and what `restore` raises; then the
        session stays suspended.
        """
        self.stop_retiring()
        resume_state, data, store = self.resume_state, self._snapshot, self._services.store
        assert resume_state is not None, "the session is suspended"
        while self._world.slot is None:
            self._context.scope.check()
            if self._fits():
                self._world.take_slot()
            else:
                await asyncio.sleep(LOOK)
        if data is None and store is not None:
            loop = asyncio.get_running_loop()
            data = await loop.run_in_executor(self._services.encoders, store.get, self._context.session)
        try:
            await self._made_again(resume_state, data)
        except Exception:
            self._world.unmake()
            raise
        self.over()
        return resume_state

    async def _made_again(self, resume_state: ResumeState, data: bytes | None) -> None:
        """From its checkpoint on; from its opening, where that is possible and the checkpoint is none any more."""
        try:
            await restore(self._context, self._prompts, self._driver, resume_state, data)
        except (SnapshotMismatch, PartLost, serial.SerialError) as problem:
            if data is None or not resume_state.complete:
                raise
            log.warning("session %s is made again from its opening: %s", self._context.session, problem)
            self._world.unmake()
            self._world.take_slot()
            await restore(self._context, self._prompts, self._driver, resume_state, None)

    def _retire(self) -> None:
        store = self._services.store
        if store is not None:
            asyncio.get_running_loop().run_in_executor(self._services.encoders, self._move_to_disk, store)

    def _move_to_disk(self, store: SnapshotFolder) -> None:
        try:
            store.retire(self._context.session)
        except (OSError, PartLost):
            log.exception("session %s stays in memory: it cannot be written to disk", self._context.session)
