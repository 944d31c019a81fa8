"""Two lanes of one device: a decode that runs beside it meets other chunks' steps, and the worlds are the same bits."""

import asyncio
from dataclasses import replace

import numpy as np
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.engine.device.batch import Batch, launch
from worldroom.engine.device.device import ThreadDevice
from worldroom.engine.device.device import run as run_batch
from worldroom.engine.engine import Engine
from worldroom.engine.output.playout import ABSORBED
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.placement import Placement, realtime
from worldroom.simulation.virtual_time import run
from worldroom.tests.drive_card import drive
from worldroom.tests.fake_engine import FakeDevice, Person, engine_on, started, toy

COSTS = {StepKind.DENOISE: 0.003, StepKind.COMMIT: 0.001, StepKind.DECODE: 0.006}
SPEC = EngineSpec(slots=8)
ABSORBED_US = ABSORBED * 1e6 / 24  # what the playout clock makes up for


def cost(batch: Batch) -> float:
    return COSTS.get(batch.kind, 0.0)


async def with_decode(where: Placement) -> tuple[Engine, FakeDevice]:
    return await started(cost, (toy(decode=where),), SPEC)


async def admitted(engine: Engine) -> list[Person]:
    """Persons who ask for two steps, one after the other, until one is refused."""
    people: list[Person] = []
    while True:
        person = Person(engine, f"p{len(people)}")
        if isinstance(await person.open(steps=2), api.Refused):
            return people
        people.append(person)


def test_more_sessions_fit_and_none_is_late_when_decodes_run_beside_the_device() -> None:
    async def scene(where: Placement) -> tuple[int, int]:
        engine, device = await with_decode(where)
        people = await admitted(engine)
        await asyncio.sleep(5)
        for person in people:
            late = [done.late_us for _, done in person.done[24:] if done.late_us > ABSORBED_US]
            assert len(late) <= len(person.done) // 50, late
            assert len(person.frames) > 100
        trail = {step.device for step in engine.steps() if step.kind == StepKind.DECODE}
        assert trail == {"fake" if where is Placement.DEVICE else "fake aux"}
        await engine.close()
        return len(people), device.overlapped

    assert run(scene(Placement.DEVICE)) == (2, 0)  # 13 ms of 41.7, 90 % are given away
    fit, overlapped = run(scene(Placement.AUX))
    assert fit == 5  # 7 ms of the busier lane
    assert overlapped > 100


def test_worlds_are_the_same_whichever_lane_decodes() -> None:
    async def scene(where: Placement) -> list[list[str]]:
        engine, _ = await with_decode(where)
        people = [Person(engine, name) for name in "ab"]
        for number, person in enumerate(people):
            await person.open(steps=2, seed=number)
        await asyncio.sleep(4)
        digests = [person.digests()[:80] for person in people]
        await engine.close()
        return digests

    there, beside = run(scene(Placement.DEVICE)), run(scene(Placement.AUX))
    assert there == beside
    assert len(there[0]) == 80


def test_a_cancelled_chunk_leaves_the_lane_beside_and_both_lanes_run_dry() -> None:
    async def scene() -> None:
        engine, device = await with_decode(Placement.AUX)
        people = await admitted(engine)
        await asyncio.sleep(1)
        for _ in range(20):
            for person in people:
                person.supersede(restart=True, seed=7)
                await asyncio.sleep(0.0031)
        assert sum(len(person.cancelled) for person in people) > 10
        for person in people:
            engine.post(api.Close(person.session))
        await asyncio.sleep(1)
        assert engine.capacity()[0].pool_bytes_used == 0
        assert engine.capacity()[0].queue_depth == 0 and not device.busy
        engine.check_integrity()
        await engine.close()

    run(scene())


async def test_drive_computes_the_same_bits_on_two_threads_at_once() -> None:
    loaded = drive()
    loaded = replace(loaded, card=replace(loaded.card, program=realtime(Placement.AUX)))
    device = ThreadDevice(SystemClock())
    await device.allocate(loaded, 1)

    def batch(kind: StepKind) -> Batch:
        work = loaded.runtime.warm_up_rows(kind, 1)
        return Batch(loaded, "chunk_rollout", kind, tuple(row for row, _ in work), tuple(view for _, view in work))

    denoise, decode = batch(StepKind.DENOISE), batch(StepKind.DECODE)
    x0, frame = launch(denoise).results()[0].x0_NC, launch(decode).results()[0].frame_HWC
    for _ in range(5):
        denoised, decoded = await asyncio.gather(run_batch(device, denoise), run_batch(device, decode))
        assert np.array_equal(denoised.results[0].x0_NC, x0)
        assert np.array_equal(decoded.results[0].frame_HWC, frame)
    await device.close()


def test_what_an_engine_holds_can_be_asked_at_any_moment_of_its_warm_up() -> None:
    async def scene() -> None:
        engine = engine_on(FakeDevice(cost), (toy(decode=Placement.AUX),), SPEC)
        starting = asyncio.create_task(engine.start())
        asked = 0
        while not starting.done():
            await asyncio.sleep(0.0007)
            asked += len(engine.cards()) + len(engine.capacity())
        await starting
        assert asked > 200
        await engine.close()

    run(scene())
