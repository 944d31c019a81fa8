"""A world whose memory on the device went bad is made again from what was written down of it; virtual time."""

import asyncio
from pathlib import Path

from worldroom.engine import api
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.engine.device.device import Batch
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.wan.runtime import WanRuntime
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import BadSteps, FakeDevice, Person, engine_on, toy, until

CHUNKS = 9


def on(loaded: LoadedCard, folder: Path) -> tuple[Engine, FakeDevice, list[int]]:
    """An engine that writes its worlds down every third chunk, and before which chunks it has."""
    kept: list[int] = []
    share = loaded.card.frame.per_chunk / loaded.card.frame.fps / 20

    def cost(batch: Batch) -> float:
        return 0.0 if batch.kind in (StepKind.PROMPT_ENCODE, StepKind.CACHE_IO) else share

    device, spec = FakeDevice(cost), EngineSpec(slots=2, checkpoint_chunks=3, checkpoint_seconds=1e9, share_cap=1.0)
    store = SnapshotFolder(folder)
    engine = engine_on(device, (loaded,), spec, store=store, checkpointed=lambda _, at, epoch: kept.append(at))
    return engine, device, kept


async def opened(loaded: LoadedCard, folder: Path) -> tuple[Engine, FakeDevice, list[int], Person]:
    """`on`, with somebody in a world."""
    engine, device, kept = on(loaded, folder)
    await engine.start()
    person = Person(engine, "a")
    assert isinstance(await person.open(loaded.card.name), api.Opened)
    return engine, device, kept, person


async def played(loaded: LoadedCard, folder: Path, chunks: int = CHUNKS) -> list[str]:
    engine, _, _, person = await opened(loaded, folder)
    await until(lambda: len(person.done) >= chunks, within=60)
    await engine.close()
    return person.digests()[:chunks]


def test_a_slab_full_of_bad_numbers_costs_two_chunks_and_the_world_goes_on_bit_for_bit(tmp_path: Path) -> None:
    loaded = catalog.load("wan-tiny-random")
    runtime = loaded.runtime
    assert isinstance(runtime, WanRuntime)

    async def scene() -> None:
        alone = await played(loaded, tmp_path / "alone")
        engine, _, kept, person = await opened(loaded, tmp_path / "bad")
        await until(lambda: kept and len(person.done) == kept[-1] + 1, within=60)
        runtime.slab.values[0] = float("nan")
        await until(lambda: len(person.done) >= CHUNKS, within=60)
        assert [(fault.code, fault.fatal) for fault in person.faults] == [("step_failed", False)] * 2
        assert [done.chunk for _, done in person.done] == list(range(len(person.done)))
        assert person.digests()[:CHUNKS] == alone
        engine.post(api.Pause("a"))
        await asyncio.sleep(1.0)
        numbers = [frame.frame for _, frame in person.frames]
        assert numbers == list(range(len(numbers))), "viewers see a pause, and no frame twice"
        await engine.close()

    run(scene())


def test_without_a_checkpoint_somebody_is_asked_and_nothing_is_lost(tmp_path: Path) -> None:
    async def scene() -> None:
        engine, device, kept, person = await opened(toy(), tmp_path)
        await until(lambda: len(person.done) >= 2)
        assert not kept
        device.fail = BadSteps(StepKind.DENOISE, 100)
        await until(lambda: person.faults and person.faults[-1].fatal)
        assert [fault.fatal for fault in person.faults] == [False] * 3 + [True]
        assert all(fault.whole for fault in person.faults)
        await engine.close()

    run(scene())


def test_a_device_that_stays_bad_asks_after_four_and_the_world_is_there_when_it_is_good_again(tmp_path: Path) -> None:
    async def scene() -> None:
        alone = await played(toy(), tmp_path / "alone", 40)
        engine, device, kept, person = await opened(toy(), tmp_path / "bad")
        await until(lambda: len(kept) > 2)
        device.fail = bad = BadSteps(StepKind.DENOISE, 100)
        await until(lambda: person.faults and person.faults[-1].fatal)
        assert [fault.fatal for fault in person.faults] == [False] * 3 + [True] and bad.left == 96
        assert all(fault.whole for fault in person.faults), "nothing of the world is lost"
        bad.left = 0
        engine.post(api.Resume("a"))
        await until(lambda: len(person.done) >= 40)
        assert person.digests()[:40] == alone
        await engine.close()

    run(scene())


def test_a_checkpoint_that_was_bad_already_gives_way_to_the_one_before(tmp_path: Path) -> None:
    """The third bad chunk in a row: from there back to a world that was good."""

    async def scene() -> None:
        alone = await played(toy(), tmp_path / "alone", 40)
        engine, device, kept, person = await opened(toy(), tmp_path / "bad")
        await until(lambda: len(kept) > 2)
        restored: list[int] = []

        def fail(batch: Batch) -> None:
            """Bad until a world has been written back twice."""
            if batch.kind is StepKind.CACHE_IO and type(batch.rows[0]).__name__ == "WriteEntries":
                restored.append(len(person.faults))
            if batch.kind is StepKind.DENOISE and len(restored) < 2:
                raise FloatingPointError("latents of 1 row are not finite")

        device.fail = fail
        await until(lambda: len(person.done) >= 40)
        assert restored == [2, 3] and [fault.fatal for fault in person.faults] == [False] * 3
        assert person.digests()[:40] == alone
        await engine.close()

    run(scene())
