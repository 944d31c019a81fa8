"""A paused session gives its slot and its share of the device to others, and takes them back when it goes on.

    awake --paused for a while--> snapshot in the folder (memory, later disk), slot free --resumed, and it fits--> awake

The same way in is taken by a session that comes from a worker that ended: it is asleep until it is made again.
"""

import asyncio
import logging
from collections.abc import Callable

from .. import api
from ..caches.store import SnapshotFolder
from ..drive import CancelScope, Superseded
from ..services import Services
from .checkpoint import capture
from .prompts import Prompts
from .restore import DriveChunk, restore
from .resume_state import ResumeState
from .world import SessionWorld

log = logging.getLogger(__name__)

LOOK = 0.1


class Suspension:
    """`fits` says whether the session's slot and share are free now."""

    def __init__(
        self,
        opening: api.Open,
        world: SessionWorld,
        services: Services,
        scope: CancelScope,
        prompts: Prompts,
        drive: DriveChunk,
        fits: Callable[[], bool],
    ) -> None:
        self._opening, self._world, self._services = opening, world, services
        self._scope, self._prompts, self._drive, self._fits = scope, prompts, drive, fits
        self._past: ResumeState | None = None
        self._kept: bytes | None = None
        self._retiring: asyncio.TimerHandle | None = None

    def hold(self, past: ResumeState, kept: bytes | None) -> None:
        """What this session is, until it wakes."""
        self._past, self._kept = past, kept

    async def fall(self) -> bool:
        """Write the world down and leave its slot; False when that was not possible, then it stays awake.

        Call at a boundary, and let nothing run meanwhile.
        """
        services, session, store = self._services, self._opening.session, self._services.store
        if not self._world.served.portable(services.spec.snapshot_bytes_max):
            return False
        try:
            taken = await capture(self._world, services, self._scope, self._prompts, services.clock.now())
        except Exception as problem:
            if not isinstance(problem, Superseded):
                log.exception("session %s cannot sleep", session)
            return False
        if taken is None:
            return False
        loop = asyncio.get_running_loop()
        data = await loop.run_in_executor(services.encoders, taken.dumps)
        if store is not None:
            await loop.run_in_executor(services.encoders, store.put, session, data)
            services.kept(session, taken.number, taken.epoch)
        self.hold(ResumeState(self._opening, number=taken.number), None if store is not None else data)
        self._world.leave_slot()
        self._retiring = loop.call_later(services.spec.retire_after, self._retire)
        return True

    def stir(self) -> None:
        """It wakes or ends: what is in memory stays there."""
        if self._retiring is not None:
            self._retiring.cancel()

    def _retire(self) -> None:
        store = self._services.store
        if store is not None:
            asyncio.get_running_loop().run_in_executor(self._services.encoders, self._put_down, store)

    def _put_down(self, store: SnapshotFolder) -> None:
        try:
            store.retire(self._opening.session)
        except OSError:
            log.exception("session %s stays in memory: it cannot be written to disk", self._opening.session)

    async def wake(self) -> ResumeState:
        """Wait for room, then be what was held. Raises `Superseded` and what `restore` raises; then it sleeps on."""
        self.stir()
        past, kept, store = self._past, self._kept, self._services.store
        assert past is not None, "the session sleeps"
        while not self._world.slotted:
            self._scope.check()
            if self._fits():
                self._world.take_slot()
            else:
                await asyncio.sleep(LOOK)
        if kept is None and store is not None:
            loop = asyncio.get_running_loop()
            kept = await loop.run_in_executor(self._services.encoders, store.get, self._opening.session)
        try:
            await restore(self._world, past, kept, self._services, self._scope, self._prompts, self._drive)
        except Exception:
            self._world.unmade()
            raise
        self._past = self._kept = None
        return past
