"""One coroutine's sleep: it ends at a time, or as soon as something the coroutine looks at has changed."""

import asyncio
import math


class Wakeup:
    """Remembers nothing: look at what may have changed, then `wait` without awaiting anything in between.

    A timer and a future, because `asyncio.timeout` around an event costs several times as much when the time is over.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: asyncio.Future[bool] | None = None

    def set(self, changed: bool = True) -> None:
        """Something has changed; or the time is over."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(changed)

    async def wait(self, seconds: float = math.inf) -> bool:
        """Sleep; whether something has changed before the time was over."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = None if seconds == math.inf else loop.call_later(max(0.0, seconds), self.set, False)
        try:
            return await self._waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()
