"""The only file that reads a clock. Everything else is handed a `Clock`.

Seconds are floats on one monotonic axis. Under a virtual-time event loop (tests) `LoopClock` follows that loop,
so schedulers, leases and playout run at any speed without knowing it.
"""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock and the wall clock it runs beside."""

    def now(self) -> float:
        """Seconds on a monotonic axis; the zero point means nothing."""
        ...

    def wall(self) -> float:
        """Seconds since the Unix epoch, for journals and humans only."""
        ...


class SystemClock:
    """The machine's clocks. `now` equals the default asyncio loop's `time()` and may be read from any thread."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class LoopClock:
    """The time of one event loop, virtual or real; `wall` starts at the given Unix second and runs with it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wall_at_start: float = 0.0) -> None:
        self._loop = loop
        self._offset = wall_at_start - loop.time()

    def now(self) -> float:
        return self._loop.time()

    def wall(self) -> float:
        return self._loop.time() + self._offset
