"""When a client tries again: at growing intervals with jitter, when the server says, as long as patience lasts."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .signalling import NoServer, RoomRefused

FIRST_S = 0.25
MOST_S = 8.0
HURRY_S, SEAT_WAITS_S = 1.0, 60.0
"""A network may come back any moment: for so long, while a seat waits, nobody waits longer than that for it."""
STEADY_S = 5.0
"""A connection that lasted for so long was a good one."""

Made = TypeVar("Made")


class Retry:
    """`patience`: seconds to keep trying. `seed`: of the jitter. `refusals`: how often the server had no place."""

    def __init__(self, patience: float, seed: int) -> None:
        self._patience, self._random = patience, random.Random(seed)
        self._brief = self.refusals = 0

    async def until_made(self, attempt: Callable[[], Awaitable[Made]]) -> Made:
        """A refusal says when to come back, anything else backs off. Raises the last `RoomRefused` or `NoServer`."""
        began, wait = time.monotonic(), FIRST_S
        until = began + self._patience
        while True:
            try:
                return await attempt()
            except RoomRefused as refused:
                self.refusals += 1
                pause = max(wait, refused.retry_after_s or 0.0)
                if refused.retry_after_s is None or time.monotonic() + pause > until:
                    raise
            except NoServer:
                pause = wait if time.monotonic() - began > SEAT_WAITS_S else min(wait, HURRY_S)
                if time.monotonic() + pause > until:
                    raise
            wait = min(wait * 2, MOST_S)
            await self._rest(pause)

    async def after(self, lasted: float) -> None:
        """A connection was lost that had lasted so long: one that is lost again and again is not made faster and
        faster.
        """
        self._brief = self._brief + 1 if lasted < STEADY_S else 0
        if self._brief > 1:
            await self._rest(min(FIRST_S * 2**self._brief, MOST_S))

    async def _rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self._random.uniform(1.0, 1.5))
