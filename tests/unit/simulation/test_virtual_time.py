"""The virtual loop: it jumps, it never waits, and thread work takes the time that it says."""

import asyncio

import pytest
from worldroom.simulation.virtual_time import Deadlock, VirtualLoop, run


def test_an_hour_passes_at_once_and_ends_on_time() -> None:
    async def scene() -> list[float]:
        loop, times = asyncio.get_running_loop(), []
        for _ in range(3):
            await asyncio.sleep(1200.1)
            times.append(round(loop.time(), 6))
        return times

    assert run(scene()) == [1200.1, 2400.2, 3600.3]


def test_thread_work_takes_no_time_unless_it_says_so() -> None:
    def work(seconds: float) -> str:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.spend(seconds)
        return "done"

    async def scene() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, sum, (1, 2))
        before = loop.time()
        assert await loop.run_in_executor(None, work, 0.25) == "done"
        return before, loop.time()

    assert run(scene()) == (0.0, 0.25)


def test_thread_work_that_fails_fails_where_it_is_awaited() -> None:
    async def scene() -> None:
        with pytest.raises(ZeroDivisionError):
            await asyncio.get_running_loop().run_in_executor(None, lambda: 1 // 0)

    run(scene())


def test_a_time_limit_that_ends_within_a_callback_ends_the_run() -> None:
    """An error of a callback is logged; a test's limit is none, and is not taken for a step that never ends."""

    class Limit(BaseException):
        pass

    def fail(problem: BaseException) -> None:
        raise problem

    async def scene() -> str:
        asyncio.get_running_loop().call_later(1, fail, ValueError("logged"))
        await asyncio.sleep(2)
        asyncio.get_running_loop().call_later(1, fail, Limit("300 s"))
        await asyncio.sleep(2)
        return "never"

    with pytest.raises(Limit, match="300 s"):
        run(scene())


def test_a_program_that_waits_for_ever_is_told() -> None:
    with pytest.raises(Deadlock, match=r"at virtual time 2\.5"):
        run(_wait_for_ever())


async def _wait_for_ever() -> None:
    await asyncio.sleep(2.5)
    await asyncio.Event().wait()
