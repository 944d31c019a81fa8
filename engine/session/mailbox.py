"""Where a session's commands meet its coroutine: they change what it looks at, and wake it. Knows no device."""

import math
from collections.abc import Callable

from ..cancel import CancelScope
from ..wakeup import Wakeup
from .chunk import EngineChunk


class Mailbox:
    """`epoch`: the newest the session has heard of. `interrupted`: what is being asked for is no longer wanted so.

    `chunk`: begun, neither released nor over; a redirect cancels it. `withdraw` takes steps of cancelled scopes back.
    """

    def __init__(self, scope: CancelScope, withdraw: Callable[[], None], paused: bool = False, epoch: int = 0) -> None:
        self.paused, self.epoch, self.interrupted = paused, epoch, False
        self.chunk: EngineChunk | None = None
        self._scope, self._withdraw, self._wakeup = scope, withdraw, Wakeup()

    async def wait(self, seconds: float = math.inf) -> bool:
        """Until something has changed (True) or the time is over; raises `Superseded` when the session was closed."""
        changed = await self._wakeup.wait(seconds)
        self.check()
        return changed

    def check(self) -> None:
        """Raise `Superseded` when the session was closed. Look after every other await: nothing wakes `wait` twice."""
        self._scope.check()

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
