"""Virtual time: an event loop that jumps to its next timer when nothing is ready, and runs thread work inline.

An hour takes as long as its work does. Nothing here waits, so results do not depend on the machine.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set: the program waits for ever."""


class _Jump(selectors.DefaultSelector):
    """Never sleeps: the time that would be slept is added to the loop's clock."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise Deadlock(f"everything waits at virtual time {self.loop.time():.6f}")
        if timeout > 0:
            self.loop.jump()
        # The loop's own wake-up pipe is always there; only a socket makes it worth asking the system.
        return super().select(0) if len(self.get_map()) > 1 else []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = self._worked = 0.0
        selector = _Jump()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual

    def jump(self) -> None:
        """To the next timer: its very time, which the timeout told by asyncio would miss by a rounding error."""
        self._virtual = max(self._virtual, self._scheduled[0].when())  # type: ignore[attr-defined]

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A callback's error is logged as ever. What is no error, a test's time limit for one, ends the run: logged, it
        would leave a step without an end, and virtual time would pass until something else is missed.
        """
        problem = context.get("exception")
        if problem is not None and not isinstance(problem, Exception | asyncio.CancelledError):
            raise problem
        super().call_exception_handler(context)

    def spend(self, seconds: float) -> None:
        """Thread work calls this to say how much virtual time it takes."""
        self._worked += seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """The work happens now; its result comes after the virtual time that it spends."""
        done: asyncio.Future[Any] = self.create_future()
        self._worked = 0.0
        settle: Callable[[], None]
        try:
            settle = partial(done.set_result, func(*args))
        except BaseException as problem:
            settle = partial(done.set_exception, problem)
        if self._worked > 0:
            self.call_later(self._worked, _unless_cancelled, done, settle)
        else:
            settle()
        return done


def _unless_cancelled(done: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
    if not done.cancelled():
        settle()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
