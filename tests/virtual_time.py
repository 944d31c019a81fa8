"""Virtual time: an event loop that jumps to its next timer when nothing is ready, and runs thread work inline.

An hour of playout takes as long as its work does. Nothing here waits, so results do not depend on the machine.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set: the program under test waits for ever."""


class _Jump(selectors.DefaultSelector):
    """Never sleeps: the time that would be slept is added to the loop's clock."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise Deadlock(f"everything waits at virtual time {self.loop.time():.6f}")
        self.loop.jump(timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = 0.0
        selector = _Jump()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual

    def jump(self, seconds: float) -> None:
        if seconds > 0:
            due = self._scheduled[0].when() if self._scheduled else self._virtual + seconds
            self._virtual = max(self._virtual, due)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """The work happens now and takes no virtual time."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except BaseException as problem:
            done.set_exception(problem)
        return done


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
