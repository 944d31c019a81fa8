"""One row of a batch fails: its chunk ends with a fault, its neighbours do not notice."""

import asyncio
from typing import Any

from worldroom.engine import api
from worldroom.engine.device.batch import Batch, RowFault, launch
from worldroom.models.contract.loop import StepKind
from worldroom.models.toy.loop import Denoised
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started, toy


def test_a_batch_with_one_bad_row_gives_the_others_their_results() -> None:
    loaded = toy()
    loaded.runtime.allocate(3)
    work = loaded.runtime.warm_up_rows(StepKind.DENOISE, 3)
    rows, views = tuple(row for row, _ in work), tuple(view for _, view in work)
    (bad, _), *_ = loaded.runtime.warm_up_rows(StepKind.DECODE, 1)
    good = launch(Batch(loaded, "chunk_rollout", StepKind.DENOISE, rows, views)).results()
    mixed = launch(Batch(loaded, "chunk_rollout", StepKind.DENOISE, (rows[0], bad, rows[2]), views)).results()
    assert isinstance(mixed[0], Denoised) and mixed[0].x_C.tolist() == good[0].x_C.tolist()
    assert isinstance(mixed[1], RowFault) and isinstance(mixed[1].problem, ValueError)
    assert isinstance(mixed[2], Denoised) and mixed[2].x_C.tolist() == good[2].x_C.tolist()


def test_a_row_that_failed_is_a_fault_of_its_session_alone() -> None:
    async def scene() -> None:
        engine, device = await started()
        unlucky, lucky = Person(engine, "a"), Person(engine, "b")
        for person in (unlucky, lucky):
            assert isinstance(await person.open(), api.Opened)
        await asyncio.sleep(0.5)
        batches = 0

        def first_row_fails_once(batch: Batch, results: list[Any]) -> list[Any]:
            nonlocal batches
            if len(results) == 2:
                batches += 1
                if batches == 1:
                    results[0] = RowFault(FloatingPointError("not finite"))
            return results

        device.change = first_row_fails_once
        await asyncio.sleep(2)
        faults = [*unlucky.faults, *lucky.faults]
        assert batches > 0, "the two have met"
        assert [(fault.code, fault.fatal) for fault in faults] == [("step_failed", False)]
        for person in (unlucky, lucky):
            assert [event.chunk for _, event in person.done] == list(range(len(person.done)))
        await engine.close()

    run(scene())


def test_a_worker_whose_books_are_wrong_knows_it() -> None:
    async def scene() -> None:
        engine, _ = await started()
        person = Person(engine, "a")
        await person.open()
        await asyncio.sleep(0.5)
        assert engine.unsound is None
        pool = engine.runtimes["toy"].pool
        slot = pool.acquire()
        slot.committed = (70,)
        await asyncio.sleep(2.5)
        assert engine.unsound == f"slot 1 holds entries (70,) of a ring of {pool.spec.ring}"
        slot.restore(0)
        pool.free(slot)
        await engine.close()

    run(scene())
