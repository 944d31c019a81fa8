"""Rows of one batch divide its seconds: receipts, prices and admission count each chunk's own part, in virtual time."""

import asyncio

from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started, until

BATCH = 0.005
"""Seconds of a step, whatever its rows: a chunk of four alone takes 20 ms of the 42 that it lasts."""


def cost(batch: Batch) -> float:
    return 0.0 if batch.kind is StepKind.PROMPT_ENCODE else BATCH


def test_what_rows_are_told_adds_up_to_what_the_device_worked_and_more_of_them_come_in() -> None:
    async def scene() -> None:
        engine, device = await started(cost, spec=EngineSpec(slots=4, share_cap=1.0))
        people = [Person(engine, name, answers=False) for name in "ab"]
        for person in people:
            assert isinstance(await person.open(), api.Opened)
        await asyncio.sleep(0.5)
        for person in people:
            person.answers = True
            person.answer()
        third = Person(engine, "c")
        assert isinstance(await third.open(), api.Refused), "as long as a chunk was only seen alone"
        await asyncio.sleep(0.5)
        skipped = [len(person.done) for person in people]
        device.ran.clear()
        await until(lambda: all(len(person.done) >= 30 for person in people))

        assert {rows for _, rows in device.ran} == {2}, "they are made in step"
        told = [done.timings for person, n in zip(people, skipped, strict=True) for _, done in person.done[n:]]
        assert sum(one.step_us + one.decode_us for one in told) == round(len(device.ran) * BATCH * 1e6)
        for one in told:
            assert (one.step_us, one.decode_us) == (7500, 2500)
            assert one.wait_us == 10_000, "the other's part of its batches is waiting"
        assert engine.cards()[0].price_us == 10_000
        assert isinstance(await third.open(), api.Opened)
        await engine.close()

    run(scene())
