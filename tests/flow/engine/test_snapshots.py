"""A world written down goes on bit for bit, on the same worker or another one; virtual time."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from worldroom.engine import api
from worldroom.engine.caches import snapshot
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.engine.device.batch import Batch
from worldroom.engine.session.resume_state import ResumeState
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.version import SOFTWARE
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, Person, engine_on, steady, toy, until


class Worker:
    """An engine that keeps checkpoints in a folder."""

    def __init__(self, loaded: LoadedCard, folder: Path, chunks: int = 7, slots: int = 3) -> None:
        (folder / "disk").mkdir(parents=True, exist_ok=True)
        self.store = SnapshotFolder(folder, folder / "disk")
        self.kept: list[tuple[str, int, int]] = []
        self.device = FakeDevice(steady(0.003))
        self.engine = engine_on(
            self.device,
            (loaded,),
            EngineSpec(slots=slots, checkpoint_chunks=chunks, checkpoint_seconds=1e9, share_cap=1.0),
            store=self.store,
            checkpointed=lambda session, chunk, epoch: self.kept.append((session, chunk, epoch)),
        )

    async def revive(self, person: Person, kept: bytes | None, past: ResumeState) -> None:
        person.engine = self.engine
        assert isinstance(await self.engine.restore(past, kept, person.hear), api.Opened)


def steering(chunk: int) -> tuple[float, ...]:
    return tuple(float(chunk >> bit & 1) for bit in range(4))


def drive() -> LoadedCard:
    import torch
    from worldroom.tests.drive_card import drive

    torch.set_num_threads(1)
    return drive()


@pytest.mark.parametrize("make", [toy, drive])
def test_a_restored_world_goes_on_as_if_nothing_had_happened(make: Callable[[], LoadedCard], tmp_path: Path) -> None:
    async def scene() -> None:
        loaded = make()
        here = Worker(loaded, tmp_path)
        await here.engine.start()
        person = Person(here.engine, "a", "a storm", steering)
        assert isinstance(await person.open(loaded.card.name, seed=5), api.Opened)
        await until(lambda: len(person.done) >= 18)
        (_, first, _), (_, second, _) = here.kept[:2]
        assert (first, second) == (7, 14)
        kept = here.store.get("a", whole=True)
        assert kept is not None
        number = snapshot.of_manifest(kept)[0].number
        assert number == here.kept[-1][1]
        await until(lambda: len(person.done) >= 30)
        await here.engine.close()
        assert here.store.get("a") is None, "a closed session leaves no file"

        there = Worker(make(), tmp_path)
        await there.engine.start()
        other = Person(there.engine, "b", "noise", steering)
        await other.open(loaded.card.name, seed=6)  # so that another slot is taken
        again = Person(there.engine, "a", "a storm", steering, key=person.key)
        opening = api.Open("a", loaded.card.name, seed=5)
        await there.revive(again, kept, ResumeState(opening, progress=api.Progress(chunk=number)))
        await until(lambda: len(again.done) >= 30 - number)
        assert again.digests()[: 30 - number] == person.digests()[number:30]
        assert not again.faults
        await there.engine.close()
        there.engine.check_integrity()

    run(scene())


def test_what_was_done_after_the_checkpoint_is_made_again_unseen(tmp_path: Path) -> None:
    async def scene() -> None:
        here = Worker(toy(), tmp_path, chunks=10)
        await here.engine.start()
        person = Person(here.engine, "a", "a storm", steering)
        await person.open(seed=5)
        await until(lambda: len(person.done) >= 17)
        kept, number = here.store.get("a", whole=True), here.kept[-1][1]
        done = len(person.done)
        history = [api.Begin("a", n, conditions(person, n)) for n in range(number, done)]
        await until(lambda: len(person.done) >= 40)
        await here.engine.close()

        there = Worker(toy(), tmp_path)
        await there.engine.start()
        again = Person(there.engine, "a", "a storm", steering, key=person.key)
        opening = api.Open("a", "toy", seed=5)
        past = ResumeState(
            opening, tuple(history), ("a storm",), progress=api.Progress(chunk=done, frame=done, pts=90_000), at=0.0
        )
        await there.revive(again, kept, past)
        await until(lambda: len(again.done) >= 40 - done)
        assert [event.chunk for _, event in again.done][:3] == [done, done + 1, done + 2]
        assert again.digests()[: 40 - done] == person.digests()[done:40]
        assert again.frames[0][1].frame == done
        assert again.frames[0][1].pts > 90_000
        assert again.frames[0][1].key
        await there.engine.close()

    run(scene())


def conditions(person: Person, chunk: int) -> api.Conditions:
    share = (api.PromptShare(person.key, 1.0),)
    return api.Conditions(0, person.controls(chunk), (0.0, 0.0), share, 1, chunk)


def test_a_world_that_was_never_written_down_is_made_again_from_its_beginning(tmp_path: Path) -> None:
    async def scene() -> None:
        here = Worker(toy(), tmp_path)
        await here.engine.start()
        person = Person(here.engine, "a", "a storm", steering)
        await person.open(seed=5)
        await until(lambda: len(person.done) >= 12)
        history = (
            *(api.Begin("a", n, conditions(person, n)) for n in range(4)),
            api.Supersede("a", 1, restart=True, seed=5),
        )
        restarted = Person(here.engine, "b", "a storm", steering, key=person.key, epoch=1)
        past = ResumeState(
            api.Open("b", "toy", seed=77), history, ("a storm",), progress=api.Progress(chunk=4, epoch=1)
        )
        await here.revive(restarted, None, past)
        await until(lambda: len(restarted.done) >= 3)
        assert [event.chunk for _, event in restarted.done][:2] == [4, 5]
        await here.engine.close()

    run(scene())


def test_a_past_with_a_hole_is_a_fatal_fault_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scene() -> None:
        here = Worker(toy(), tmp_path)
        await here.engine.start()
        person = Person(here.engine, "a", key="k")
        history = (api.Begin("a", 3, conditions(person, 3)),)
        await here.revive(
            person, None, ResumeState(api.Open("a", "toy", seed=1), history, progress=api.Progress(chunk=4))
        )
        await until(lambda: person.faults)
        assert [(fault.code, fault.fatal) for fault in person.faults] == [("lost", True)]
        here.engine.post(api.Close("a"))
        await asyncio.sleep(1)
        assert here.engine.capacity()[0].pool_bytes_used == 0
        await here.engine.close()

    run(scene())


def test_a_snapshot_of_another_card_is_refused() -> None:
    kept = snapshot.Snapshot(snapshot.maker(drive()), 2, 1, 0, 3, 0, None, 0, (), (), None, software=SOFTWARE)
    with pytest.raises(snapshot.SnapshotMismatch, match=r"snapshot of card, .* drive@.*: this worker runs toy@"):
        kept.check(toy())
    with pytest.raises(snapshot.SnapshotMismatch, match=r"of version 0\.0\.9 of this program, this is"):
        replace(kept, software="0.0.9").check(drive())


async def sleeper(folder: Path) -> tuple[Worker, Person]:
    """A worker with one slot, and a session that has made ten chunks and sleeps."""
    here = Worker(toy(), folder, slots=1)
    await here.engine.start()
    person = Person(here.engine, "a", "a storm", steering)
    await person.open(seed=5)
    await until(lambda: len(person.done) >= 10)
    here.engine.post(api.Pause("a"))
    await asyncio.sleep(25)
    return here, person


def test_a_paused_world_sleeps_gives_its_slot_away_and_wakes_within_a_chunk(tmp_path: Path) -> None:
    async def scene() -> None:
        here, first = await sleeper(tmp_path)
        capacity = here.engine.capacity()[0]
        assert (capacity.sessions, capacity.pool_bytes_used, capacity.share_used) == (1, 0, 0.0)

        second = Person(here.engine, "b", "noise", steering)
        assert isinstance(await second.open(seed=6), api.Opened)
        here.engine.post(api.Resume("a"))
        slept = len(first.done)
        await asyncio.sleep(1)
        assert len(first.done) == slept, "it waits for the slot"
        here.engine.post(api.Close("b"))
        await asyncio.sleep(0.3)
        assert len(first.done) > slept
        await until(lambda: len(first.done) >= 30)

        here.engine.post(api.Pause("a"))
        await asyncio.sleep(200)
        assert here.engine.capacity()[0].pool_bytes_used == 0
        assert len(os.listdir(tmp_path / "disk")) == 1 and here.store.bytes_used[1] > 0
        due, resumed = len(first.dues), asyncio.get_running_loop().time()
        here.engine.post(api.Resume("a"))
        await until(lambda: len(first.dues) > due)
        assert first.dues[due][0] - resumed < 1 / 24
        await asyncio.sleep(1)
        assert [event.chunk for _, event in first.done] == list(range(len(first.done)))
        digests = first.digests()
        here.engine.post(api.Close("a"))
        await asyncio.sleep(1)

        solo = Person(here.engine, "solo", "a storm", steering)
        await solo.open(seed=5)
        await until(lambda: len(solo.done) >= len(digests))
        assert solo.digests()[: len(digests)] == digests
        await here.engine.close()
        here.engine.check_integrity()

    run(scene())


def test_a_sleeper_whose_cache_cannot_be_written_back_sleeps_on_until_somebody_tries_again(tmp_path: Path) -> None:
    async def scene() -> None:
        here, person = await sleeper(tmp_path)
        slept = len(person.done)

        def fails(batch: Batch) -> None:
            if batch.kind is StepKind.CACHE_IO:
                raise OSError("the device is gone")

        here.device.fail = fails
        here.engine.post(api.Resume("a"))
        await asyncio.sleep(1)
        assert [(fault.code, fault.fatal) for fault in person.faults] == [("lost", True)]
        assert len(person.done) == slept and here.engine.capacity()[0].pool_bytes_used == 0
        here.device.fail = lambda batch: None
        here.engine.post(api.Resume("a"))
        await until(lambda: len(person.done) >= slept + 10)
        digests = person.digests()
        await here.engine.close()
        assert digests == await alone_in(tmp_path / "alone", len(digests))

    run(scene())


async def alone_in(folder: Path, count: int) -> list[str]:
    """The first chunks of the same world, never put to sleep."""
    there = Worker(toy(), folder, slots=1)
    await there.engine.start()
    person = Person(there.engine, "a", "a storm", steering)
    await person.open(seed=5)
    await until(lambda: len(person.done) >= count)
    await there.engine.close()
    return person.digests()[:count]


def test_a_sleeper_can_be_closed_redirected_and_woken_in_any_order(tmp_path: Path) -> None:
    async def scene() -> None:
        here, person = await sleeper(tmp_path)
        person.supersede(restart=True, seed=6)
        here.engine.post(api.Resume("a"))
        before = len(person.done)
        await until(lambda: len(person.done) >= before + 12)
        fresh = person.digests()[before:]
        here.engine.post(api.Pause("a"))
        await asyncio.sleep(25)
        here.engine.post(api.Close("a"))
        await asyncio.sleep(1)
        assert here.store.get("a") is None
        assert not person.faults
        assert len(set(fresh)) == len(fresh)
        await here.engine.close()
        here.engine.check_integrity()

    run(scene())
