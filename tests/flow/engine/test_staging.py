"""A batch stands ready behind the one that runs; until it begins it can change, be withdrawn, or give way."""

import asyncio
import math
from typing import Any

import pytest
from worldroom.clock import LoopClock
from worldroom.engine.api import LatencyClass
from worldroom.engine.cancel import CancelScope, Superseded
from worldroom.engine.device.queue import DeviceQueue, StepRun
from worldroom.engine.scheduling.costs import Costs, StepKey
from worldroom.engine.scheduling.ticket import Rules, Ticket
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.recipe import Precision
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, toy

KEY = StepKey("toy", "", StepKind.PROMPT_ENCODE, (), Precision.INT)
STEP = 0.010


class Bench:
    """A lane, and people who hand it one step each: a prompt to encode, which the fake device does in 10 ms."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.device, self.costs, self.card = FakeDevice(lambda batch: STEP), Costs(), toy()
        for rows in (1, 2):
            self.costs.observe(KEY, rows, rows * STEP)
        rules = Rules(max_rows=1, ageing=2.0, seed=0)
        self.lane = DeviceQueue(self.device, "fake", self.costs, LoopClock(loop), rules, lambda: math.inf, ())
        self.order: list[str] = []
        self.scopes: dict[str, CancelScope] = {}
        self._serving = loop.create_task(self.lane.serve())
        self._numbers = iter(range(100))

    def submit(self, name: str, latest_start: float) -> "asyncio.Task[StepRun]":
        scope = self.scopes[name] = CancelScope()
        ticket = Ticket(
            next(self._numbers), name, KEY, LatencyClass.INTERACTIVE, 0.0, latest_start, latest_start + 1.0, STEP
        )
        return asyncio.get_running_loop().create_task(self._wait(name, ticket, scope))

    async def _wait(self, name: str, ticket: Ticket, scope: CancelScope) -> StepRun:
        ran = await self.lane.submit(ticket, self.card, name, None, scope)
        self.order.append(name)
        return ran

    async def close(self) -> None:
        self._serving.cancel()
        await asyncio.wait([self._serving])


def play(scene: Any) -> None:
    async def played() -> None:
        bench = Bench()
        await scene(bench)
        assert bench.lane.idle and not bench.device.busy
        await bench.close()

    run(played())


def test_the_device_never_stands_idle_between_two_batches() -> None:
    async def scene(bench: Bench) -> None:
        first, second = bench.submit("a", 0.1), bench.submit("b", 0.2)
        ran = await asyncio.gather(first, second)
        assert [one.started for one in ran] == [0.0, STEP]
        assert bench.lane.depth == 0

    play(scene)


def test_a_more_urgent_step_takes_the_place_of_the_one_that_stands_ready() -> None:
    async def scene(bench: Bench) -> None:
        steps = [bench.submit("a", 0.1), bench.submit("b", 0.3)]
        await asyncio.sleep(STEP / 2)
        assert bench.lane.depth == 1
        steps.append(bench.submit("c", 0.2))
        await asyncio.gather(*steps)
        assert bench.order == ["a", "c", "b"]
        assert bench.device.revoked == 1

    play(scene)


def test_a_cancelled_step_is_taken_back_before_it_begins_and_its_answer_is_immediate() -> None:
    async def scene(bench: Bench) -> None:
        first, second = bench.submit("a", 0.1), bench.submit("b", 0.2)
        await asyncio.sleep(STEP / 2)
        bench.scopes["b"].cancel()
        bench.lane.withdraw()
        with pytest.raises(Superseded):
            await second
        assert asyncio.get_running_loop().time() == STEP / 2
        await first
        await asyncio.sleep(STEP)
        assert bench.device.ran == [(StepKind.PROMPT_ENCODE, 1)]

    play(scene)


def test_a_step_that_has_begun_is_not_taken_back() -> None:
    async def scene(bench: Bench) -> None:
        first, second = bench.submit("a", 0.1), bench.submit("b", 0.2)
        await asyncio.sleep(STEP * 1.5)
        bench.scopes["b"].cancel()
        bench.lane.withdraw()
        assert not second.done()
        await asyncio.gather(first, second)
        assert bench.order == ["a", "b"]

    play(scene)


def test_a_batch_that_fails_does_not_keep_the_one_behind_it() -> None:
    async def scene(bench: Bench) -> None:
        def first_fails(batch: Any) -> None:
            if batch.rows == ("a",):
                raise FloatingPointError("not finite")

        bench.device.fail = first_fails
        first, second = bench.submit("a", 0.1), bench.submit("b", 0.2)
        with pytest.raises(FloatingPointError):
            await first
        assert (await second).started == STEP

    play(scene)


def test_how_long_a_batch_works_is_counted_from_when_it_began_not_from_when_it_stood_ready() -> None:
    async def scene(bench: Bench) -> None:
        steps = [bench.submit("a", 0.1), bench.submit("b", 0.2)]
        await asyncio.sleep(STEP * 1.5)
        seconds, patience = bench.lane.busy
        assert seconds == pytest.approx(STEP / 2)
        assert patience == 2.0, "case 74: a step that once takes long does not hang yet"
        await asyncio.gather(*steps)
        assert bench.lane.busy == (0.0, 0.0)

    play(scene)
