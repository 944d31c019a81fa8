"""Worlds of every family are written down, go on elsewhere bit for bit, sleep and wake; virtual time."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch
from worldroom.engine import api
from worldroom.engine.caches import snapshot
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.engine.engine import Engine
from worldroom.engine.session.resume_state import ResumeState
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.shared.slab_bytes import from_bytes, to_bytes
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, Person, engine_on, started, toy, until
from worldroom.tests.small_cards import SMALL_CARDS, fellows, part_of_a_chunk, small_card, steering

pytestmark = pytest.mark.usefixtures("one_thread")

CHUNKS = {"waypoint-tiny-random": 26}  # past the span of its global layers
AFTER = 6


def engine(loaded: LoadedCard, folder: Path, every: int) -> tuple[Engine, SnapshotFolder, list[int]]:
    (folder / "disk").mkdir(exist_ok=True)
    store, kept = SnapshotFolder(folder, folder / "disk"), []
    spec = EngineSpec(slots=2, checkpoint_chunks=every, checkpoint_seconds=1e9, share_cap=1.0)
    device = FakeDevice(part_of_a_chunk(loaded))
    made = engine_on(device, (loaded,), spec, store=store, checkpointed=lambda name, chunk, epoch: kept.append(chunk))
    return made, store, kept


@pytest.mark.parametrize("card", SMALL_CARDS)
def test_a_world_goes_on_elsewhere_and_after_sleep_as_if_nothing_had_happened(card: str, tmp_path: Path) -> None:
    loaded = small_card(card)
    chunks = CHUNKS.get(card, AFTER)

    def person_of(made: Engine, name: str, suggestion: int, key: str = "") -> Person:
        words = loaded.card.suggestions[suggestion]
        return Person(made, name, words, steering(loaded), key=key, others=fellows(loaded))

    async def scene() -> None:
        here, store, kept = engine(loaded, tmp_path, chunks - 2)
        await here.start()
        person = person_of(here, "a", 0)
        assert isinstance(await person.open(card, seed=5), api.Opened)
        await until(lambda: kept, within=60)
        written = store.get("a", whole=True)
        assert written is not None
        number = snapshot.of_manifest(written)[0].number
        await until(lambda: len(person.done) >= number + 5, within=60)
        wanted = person.digests()[number : number + 5]

        other = person_of(here, "b", -1)
        await other.open(card, seed=6)  # its cache lies in the second slot
        await until(lambda: len(other.done) >= 2, within=60)
        here.post(api.Close("a"))
        await asyncio.sleep(1)
        again = person_of(here, "c", 0, person.key)
        assert isinstance(
            await here.restore(
                ResumeState(api.Open("c", card, seed=5), progress=api.Progress(chunk=number)), written, again.hear
            ),
            api.Opened,
        )
        await until(lambda: len(again.done) >= 2, within=60)
        here.post(api.Pause("c"))
        here.post(api.Close("b"))
        await asyncio.sleep(30)
        assert here.capacity()[0].pool_bytes_used == 0
        here.post(api.Resume("c"))
        await until(lambda: len(again.done) >= 5, within=60)
        assert again.digests()[:5] == wanted
        assert not again.faults and not person.faults
        await here.close()
        here.check_integrity()

    run(scene())


def test_a_clip_card_keeps_its_count() -> None:
    loaded = catalog.load("wan-tiny-clip")
    assert loaded.carry is not None and loaded.slab is None


def test_bytes_of_a_slab_are_exact_in_every_precision_and_of_one_length() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int8):
        parts = [torch.arange(24).view(2, 3, 4).to(dtype)[:, 1], torch.arange(5).to(dtype)]
        data = to_bytes(*parts)
        copies = [torch.zeros_like(part) for part in parts]
        from_bytes(data, *copies)
        assert all(torch.equal(a, b) for a, b in zip(parts, copies, strict=True))
        with pytest.raises(ValueError, match="bytes of cache are needed"):
            from_bytes(data[:-1], *copies)
    empty = torch.zeros(0, 3)
    from_bytes(to_bytes(empty), empty)


def test_tensor_embeddings_are_written_down_too() -> None:
    held: tuple[tuple[str, object], ...] = (("a", np.ones(3, np.float32)), ("b", torch.full((2,), 0.5)), ("c", "text"))
    written = dict(snapshot.feature_bytes(held))
    assert list(written) == ["a", "b"]
    back = snapshot.value_in(written["b"])
    assert isinstance(back, torch.Tensor) and back.tolist() == [0.5, 0.5]


def test_a_world_beyond_the_budget_of_the_store_stays_where_it_is(tmp_path: Path) -> None:
    async def scene() -> None:
        for most, written in ((100, False), (100_000, True)):
            kept: list[int] = []
            made, _ = await started(
                lambda batch: 0.001,
                (toy(),),
                EngineSpec(checkpoint_chunks=5, checkpoint_seconds=1e9),
                store=SnapshotFolder(tmp_path / str(most), memory_max=most),
                checkpointed=lambda name, chunk, epoch, kept=kept: kept.append(chunk),
            )
            person = Person(made, "a")
            await person.open()
            await until(lambda person=person: len(person.done) >= 12)
            made.post(api.Pause("a"))
            await asyncio.sleep(40)
            assert (bool(kept), made.capacity()[0].pool_bytes_used == 0) == (written, written)
            await made.close()

    run(scene())
