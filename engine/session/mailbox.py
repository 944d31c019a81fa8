"""Where a session's commands meet its coroutine: they change what it looks at, and wake it. Knows no device."""

import math

from .. import api
from ..wakeup import Wakeup
from .chunk import EngineChunk
from .context import SessionContext


class Mailbox:
    """`epoch`: the newest the session has heard of. `interrupted`: what is being asked for is no longer wanted so.

    `chunk`: begun, neither released nor over; a redirect cancels it. `progress`: where the session was, if it was.
    """

    def __init__(self, context: SessionContext, progress: api.Progress) -> None:
        self.paused, self.epoch, self.interrupted = progress.paused, progress.epoch, False
        self.chunk: EngineChunk | None = None
        self._scope, self._wakeup = context.scope, Wakeup()
        self._withdraw = context.services.dispatcher.withdraw

    async def wait(self, seconds: float = math.inf) -> bool:
        """Until something has changed (True) or the time is over; raises `Superseded` when the session was closed.

        Nothing wakes it twice: look at the session's scope after every other await.
        """
        changed = await self._wakeup.wait(seconds)
        self._scope.check()
        return changed

    def put(self, chunk: EngineChunk) -> None:
        """The chunk that was asked for."""
        self.chunk, self.epoch = chunk, chunk.conditions.epoch
        self._wakeup.set()

    def pause(self) -> None:
        self.paused = True
        self.interrupt()

    def resume(self) -> None:
        self.paused = False
        self._wakeup.set()

    def interrupt(self) -> None:
        """Ask anew, or not at all."""
        self.interrupted = True
        self._wakeup.set()

    def redirect(self, epoch: int) -> None:
        """Chunks of older epochs are not wanted any more."""
        self.epoch = max(self.epoch, epoch)
        if self.chunk is not None and self.chunk.conditions.epoch < self.epoch:
            self.cancel_chunk()

    def cancel_chunk(self) -> None:
        if self.chunk is not None:
            self.chunk.scope.cancel()
            self._withdraw()

    def close(self) -> None:
        self._scope.cancel()
        self._withdraw()
        self._wakeup.set()
