"""Where the next worker comes from: a start that fails is tried again, and counted until one succeeds."""

import asyncio
import logging

import pytest
from worldroom.clock import LoopClock
from worldroom.engine.worker import process
from worldroom.engine.worker.devices import WorkerDevice
from worldroom.engine.worker.process import StandbyWorker, WorkerProcess
from worldroom.simulation.virtual_time import run


class Unwilling(WorkerProcess):
    """A process that cannot be started the first `refusals` times."""

    refusals = 0

    async def start(self) -> None:
        if Unwilling.refusals:
            Unwilling.refusals -= 1
            raise BlockingIOError(11, "Resource temporarily unavailable")


def standby(refusals: int, after: float | None = 0.0) -> StandbyWorker:
    Unwilling.refusals = refusals
    clock = LoopClock(asyncio.get_running_loop())
    return StandbyWorker(lambda: Unwilling(clock, lambda message: None, WorkerDevice()), after, ())


def test_case_79_a_spare_that_fails_to_start_is_tried_again_with_backoff(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        spare = standby(refusals=3)
        spare.prepare()
        await asyncio.sleep(0.1)
        assert (spare.failed, spare.process) == (1, None)
        await asyncio.sleep(0.5 + 1.0)
        assert (spare.failed, spare.process) == (3, None)
        await asyncio.sleep(2.0)
        assert spare.failed == 0 and spare.process is not None

    with caplog.at_level(logging.ERROR, process.__name__):
        run(scene())
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "a worker process cannot be started (Resource temporarily unavailable); tried again in 0.5 s"
    assert len(said) == 3


def test_case_79_a_death_while_the_spare_waits_for_its_next_try_starts_one_at_once() -> None:
    async def scene() -> None:
        loop, spare = asyncio.get_running_loop(), standby(refusals=1)
        spare.prepare()
        await asyncio.sleep(0.1)
        assert spare.failed == 1
        began = loop.time()
        await spare.next()
        assert loop.time() == began and spare.failed == 0

    run(scene())
