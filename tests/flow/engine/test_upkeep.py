"""Beside serving: pools are inspected when the device is idle, and prompts of many sessions are encoded once."""

import asyncio
from collections.abc import Awaitable, Callable

from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, driven, started, steady


def play(scene: Callable[[], Awaitable[None]]) -> None:
    run(scene())


def test_pools_are_inspected_several_times_a_second_and_the_rounds_are_counted() -> None:
    async def scene() -> None:
        engine, _, _ = await driven()
        await asyncio.sleep(10)
        assert 20 <= engine.capacity()[0].inspections <= 43
        await engine.close()

    play(scene)


def test_a_device_that_is_never_idle_is_inspected_all_the_same() -> None:
    async def scene() -> None:
        engine, device, _ = await driven()
        await asyncio.sleep(1)
        device.cost = steady(1.0)
        before = engine.capacity()[0].inspections
        await asyncio.sleep(20)
        assert 6 <= engine.capacity()[0].inspections - before <= 40
        await engine.close()

    play(scene)


def test_prices_of_a_busy_start_are_measured_again_when_nobody_is_there() -> None:
    async def scene() -> None:
        engine, device = await started(steady(0.050))
        served = next(iter(engine.runtimes.values()))
        dear = served.chunk_price(served.default_steps)
        device.cost = steady(0.001)
        await asyncio.sleep(30)
        assert served.chunk_price(served.default_steps) < dear / 10
        await engine.close()

    play(scene)


def test_nobody_waits_for_prices_to_be_measured_again() -> None:
    async def scene() -> None:
        engine, device, _ = await driven(steady(0.001))
        await asyncio.sleep(5)
        engine.post(api.Pause("a"))
        await asyncio.sleep(20)
        before = len(device.ran)
        await asyncio.sleep(60)
        assert StepKind.DENOISE not in [kind for kind, _ in device.ran[before:]]
        await engine.close()

    play(scene)


def test_a_world_whose_clock_goes_slower_shows_fewer_pictures_a_second() -> None:
    async def scene() -> None:
        engine, _, person = await driven(steady(0.025), spec=EngineSpec(fps=8))
        await asyncio.sleep(10)
        assert engine.cards()[0].fps == 8
        assert 70 <= len(person.frames) <= 82
        await engine.close()

    play(scene)


def slow_words(batch: Batch) -> float:
    return 0.2 if batch.kind is StepKind.PROMPT_ENCODE else 0.002


def test_one_prompt_of_many_sessions_that_come_together_is_encoded_once() -> None:
    async def scene() -> None:
        engine, device = await started(slow_words, spec=EngineSpec(slots=4))
        before = len(device.ran)
        people = [Person(engine, name, prompt="a snowy night") for name in "abc"]
        for person in people:
            await person.open()
        await asyncio.sleep(1)
        assert [kind for kind, _ in device.ran[before:]].count(StepKind.PROMPT_ENCODE) == 1
        assert len({person.key for person in people}) == 1
        assert all(person.frames for person in people)
        await engine.close()

    play(scene)


def test_who_leaves_while_its_prompt_is_encoded_hands_the_work_to_who_waits_for_it() -> None:
    async def scene() -> None:
        engine, _ = await started(slow_words)
        other, first, second = Person(engine, "o", prompt="dunes"), Person(engine, "a"), Person(engine, "b")
        first.prompt = second.prompt = "a snowy night"
        for person in (other, first, second):
            await person.open()
        await asyncio.sleep(0.05)  # "dunes" is on the device, the others wait behind it
        engine.post(api.Close("a"))
        await asyncio.sleep(1)
        assert second.key and second.frames and not second.faults
        engine.post(api.Close("b"))
        engine.post(api.Close("o"))
        await asyncio.sleep(1)
        assert engine.services.features.in_use == 0
        await engine.close()

    play(scene)
