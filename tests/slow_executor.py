"""An executor whose work takes virtual time, whatever is handed to it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from worldroom.simulation.virtual_time import VirtualLoop


def slow_executor(cost: Callable[[], float]) -> VirtualLoop:
    """The running loop; from now on it does what is handed to an executor after `cost()` virtual seconds.

    A RuntimeError of the work is the waiter's.
    """
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)

    def run_in_executor(executor: Executor | None, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":
        done = loop.create_future()

        def work() -> None:
            try:
                done.set_result(func(*args))
            except RuntimeError as problem:
                done.set_exception(problem)

        loop.call_later(cost(), work)
        return done

    loop.run_in_executor = run_in_executor  # type: ignore[method-assign,assignment]
    return loop
