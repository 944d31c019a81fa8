"""Worlds with different adapters on one device: they share batches, keep their bits, swap between two chunks.

In virtual time; what a step computes is real, and of one thread: many spin for minutes where others want the processor.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from worldroom.engine import api
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.engine.device.batch import Batch
from worldroom.engine.engine import Engine
from worldroom.engine.session.resume_state import ResumeState
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.models.contract.loop import StepKind
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, Person, engine_on, until
from worldroom.tests.lora_files import CARDS, WAN, peft_file

pytestmark = pytest.mark.usefixtures("one_thread")

CHUNKS = 2


@pytest.fixture(params=CARDS)
def card(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def files(folder: Path, card: str) -> Path:
    (folder / "adapters").mkdir()
    for seed, name in enumerate(("snow", "rain", "film")):
        peft_file(folder / "adapters" / f"{name}.safetensors", seed, 4 + seed, card)
    return folder / "adapters"


def engine(
    card: str, folder: Path, cost: float | None = None, store: SnapshotFolder | None = None, **more: int
) -> Engine:
    """In the invariant form; a step costs a part of a chunk's time where nothing else is said."""
    loaded = catalog.load(card, replace(catalog.card(card).recipe.default, invariant=True))
    frame = loaded.card.frame
    each = frame.per_chunk / frame.fps / 20 if cost is None else cost

    def seconds(batch: Batch) -> float:
        return 0.0 if batch.kind in (StepKind.PROMPT_ENCODE, StepKind.CACHE_IO) else each

    spec = EngineSpec(slots=3, share_cap=1.0, checkpoint_chunks=2, checkpoint_seconds=1e9, **more)
    return engine_on(FakeDevice(seconds), (loaded,), spec, store=store, adapters=folder)


def held(card: api.CardInfo) -> tuple[float, ...]:
    """Every second control."""
    return tuple(float(place % 2) for place in range(len(card.controls)))


def asks(*stack: tuple[str, float]) -> tuple[api.AdapterAsk, ...]:
    return tuple(api.AdapterAsk(name, scale) for name, scale in stack)


async def swapped(person: Person, *stack: tuple[str, float]) -> api.AdaptersReady:
    """Ask for a stack; chunks from the next `Begin` on name it."""
    version = 1 + sum(isinstance(event, api.AdaptersReady) for event in person.heard)
    person.engine.post(api.SetAdapters(person.session, version, asks(*stack)))
    await until(lambda: any(isinstance(e, api.AdaptersReady) and e.version == version for e in person.heard))
    (ready,) = [e for e in person.heard if isinstance(e, api.AdaptersReady) and e.version == version]
    person.adapters = ready.shares
    return ready


async def world(made: Engine, name: str, seed: int, *stack: tuple[str, float]) -> Person:
    (card,) = made.cards()
    person = Person(made, name, "a storm", lambda chunk: held(card), answers=False)
    assert isinstance(await person.open(card.name, seed=seed), api.Opened)
    if stack:
        await swapped(person, *stack)
    return person


def begin(*people: Person) -> None:
    for person in people:
        person.answers = True
        person.answer()


def test_two_worlds_with_different_stacks_share_batches_and_have_the_bits_they_have_alone(
    card: str, tmp_path: Path
) -> None:
    folder = files(tmp_path, card)

    async def together() -> tuple[list[str], list[str], int]:
        made = engine(card, folder)
        await made.start()
        snow = await world(made, "a", 5, ("snow", 0.8))
        both = await world(made, "b", 6, ("rain", -0.5), ("film", 1.0))
        begin(snow, both)
        await until(lambda: min(len(snow.done), len(both.done)) >= CHUNKS, within=60)
        shared = sum(
            {"a", "b"} <= set(step.sessions)
            for step in made.steps()
            if step.kind in (StepKind.DENOISE, StepKind.COMMIT)
        )
        assert not snow.faults and not both.faults
        await made.close()
        made.check_integrity()
        return snow.digests()[:CHUNKS], both.digests()[:CHUNKS], shared

    async def alone(seed: int, *stack: tuple[str, float]) -> list[str]:
        made = engine(card, folder)
        await made.start()
        person = await world(made, "a", seed, *stack)
        begin(person)
        await until(lambda: len(person.done) >= CHUNKS, within=60)
        await made.close()
        return person.digests()[:CHUNKS]

    snow, both, shared = run(together())
    assert shared >= CHUNKS, "rows with different stacks ran in one batch"
    assert snow == run(alone(5, ("snow", 0.8)))
    assert both == run(alone(6, ("rain", -0.5), ("film", 1.0)))


def test_a_swap_takes_effect_at_the_next_chunk_and_is_made_again_after_a_death(card: str, tmp_path: Path) -> None:
    folder = files(tmp_path, card)

    async def scene() -> None:
        store = SnapshotFolder(tmp_path / "worlds")
        here = engine(card, folder, store=store)
        await here.start()
        plain, person = await world(here, "b", 5), await world(here, "a", 5)
        begin(plain, person)
        await until(lambda: len(person.done) >= 2, within=60)
        begun = max(person.conditions)
        ready = await swapped(person, ("snow", 0.8))
        assert (ready.rank, [share.scale for share in ready.shares]) == (4, [0.8]) and ready.bytes > 1000
        await until(lambda: min(len(person.done), len(plain.done)) >= begun + 3, within=60)
        first = next(n for n, (a, b) in enumerate(zip(person.digests(), plain.digests(), strict=False)) if a != b)
        assert first <= begun + 1, "the chunk that begins next has it"
        here.post(api.Close("b"))
        await swapped(person)
        await until(lambda: len(person.done) >= begun + 5, within=60)
        kept = store.get("a", whole=True)
        done = len(person.done)
        history = tuple(
            api.Begin("a", n, conditions) for n, conditions in sorted(person.conditions.items()) if n < done
        )
        assert {bool(step.conditions.adapters) for step in history} == {True, False}
        await until(lambda: len(person.done) > done, within=60)
        wanted = person.digests()[done]
        await here.close()
        here.check_integrity()

        there = engine(card, folder)
        await there.start()
        for snapshot in (kept, None) if card == WAN else (kept,):
            name = "c" if snapshot else "d"
            again = Person(there, name, "a storm", lambda chunk: held(there.cards()[0]), key=person.key)
            past = ResumeState(api.Open(name, card, seed=5), history, ("a storm",), progress=api.Progress(chunk=done))
            assert isinstance(await there.restore(past, snapshot, again.hear), api.Opened)
            await until(lambda again=again: len(again.done) >= 1, within=60)
            assert not again.faults
            assert (again.done[0][1].chunk, again.digests()[0]) == (done, wanted)
        await there.close()

    run(scene())


def test_what_cannot_be_had_is_said_and_changes_nothing(tmp_path: Path) -> None:
    folder = files(tmp_path, WAN)

    async def scene() -> None:
        peft_file(folder / "huge.safetensors", 7, rank=2000)
        (folder / "broken.safetensors").write_bytes(b"no")
        made = engine(WAN, folder, cost=0.085, adapter_bytes_max=90_000_000)
        await made.start()
        assert made.cards()[0].adapters == ("broken", "film", "huge", "rain", "snow")
        person = await world(made, "a", 5)
        begin(person)
        await until(lambda: len(person.done) >= 3, within=60)
        wanted = {
            "nothing": ("bad_adapter", "there is no adapter 'nothing' here: there are broken, film, huge, rain, snow"),
            "broken": ("bad_adapter", "is no safetensors file"),
            "huge": ("no_compute", "of the device beside"),
        }
        for version, (name, (code, says)) in enumerate(wanted.items(), 1):
            made.post(api.SetAdapters("a", version, asks((name, 1.0))))
            await until(lambda version=version: any(f.adapters_version == version for f in person.faults))
            fault = next(f for f in person.faults if f.adapters_version == version)
            assert (fault.code, fault.fatal) == (code, False) and says in fault.detail, fault
        before = len(person.done)
        await until(lambda: len(person.done) >= before + 2, within=60)
        await made.close()
        made.check_integrity()

        small = engine(WAN, folder, adapter_bytes_max=10_000)
        await small.start()
        person = await world(small, "a", 5)
        small.post(api.SetAdapters("a", 1, asks(("snow", 1.0))))
        await until(lambda: person.faults)
        assert person.faults[0].code == "adapters_full"
        await small.close()

    run(scene())


def test_a_card_without_a_place_for_them_says_so() -> None:
    async def scene() -> None:
        made = engine_on(FakeDevice(lambda batch: 0.001), (catalog.load("toy"),), EngineSpec(slots=1))
        await made.start()
        assert made.cards()[0].adapters == ()
        person = Person(made, "a")
        await person.open()
        made.post(api.SetAdapters("a", 1, asks(("snow", 1.0))))
        await until(lambda: person.faults)
        assert (person.faults[0].code, person.faults[0].detail) == ("bad_adapter", "card 'toy' takes no adapters")
        await asyncio.sleep(0.1)
        await made.close()

    run(scene())
