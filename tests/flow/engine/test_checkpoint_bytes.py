"""A checkpoint reads and writes what is new since the last one, in every family and however large a world is.

In virtual time.

WORLDROOM_WORLD_GIB=7 runs the same with a simulated world of that size: real bytes through digest, folder and back.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest
from worldroom.engine import api
from worldroom.engine.caches.parts import WorldPart, part_of
from worldroom.engine.session.resume_state import ResumeState
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loaded import Copied, LoadedCard, SlabIO
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, Person, engine_on, steady, toy, until
from worldroom.tests.mortal_store import MortalStore
from worldroom.tests.small_cards import SMALL_CARDS, fellows, part_of_a_chunk, small_card, steering

WORLD = int(float(os.environ.get("WORLDROOM_WORLD_GIB", "0.01")) * (1 << 30))
CHUNKS = 3
FUSED = ("drive", "dream")
"""Commit a chunk with the first step of the next one."""


@dataclass
class Large:
    """The toy's entries, each filled up to a size, as if it were a large network's."""

    inner: SlabIO
    entry: int
    read: int = 0

    def read_entry(self, slot: int, entry: int) -> Copied:
        held = self.inner.read_entry(slot, entry)
        assert isinstance(held, bytes)
        self.read += 1
        return held + bytes(self.entry - len(held))

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        assert len(data) == self.entry
        self.inner.write_entry(slot, entry, data[:64])


def large() -> tuple[LoadedCard, Large]:
    loaded = toy()
    cache = loaded.card.cache
    assert cache is not None and loaded.slab is not None
    entry = WORLD // cache.window
    slab = Large(loaded.slab, entry)
    return replace(loaded, slab=slab, card=replace(loaded.card, cache=replace(cache, bytes_per_entry=entry))), slab


def test_a_checkpoint_of_a_large_world_writes_its_new_entries_and_no_others(tmp_path: Path) -> None:
    async def scene() -> None:
        loaded, slab = large()
        assert loaded.card.cache is not None
        entry, window = slab.entry, loaded.card.cache.window
        store = MortalStore(tmp_path)
        spec = EngineSpec(
            slots=2, memory=8 * WORLD, checkpoint_chunks=1, checkpoint_seconds=1e9, checkpoint_rate=1 << 60
        )
        made = engine_on(FakeDevice(steady(0.003)), (loaded,), spec, store=store)
        await made.start()
        person = Person(made, "a", "a storm")
        await person.open(seed=5)
        slab.read = 0
        await until(lambda: len(store.wrote) >= window + CHUNKS, within=600)
        made.post(api.Pause("a"))
        manifest = store.get("a", whole=WORLD < 1 << 30)
        done = len(person.done)
        entries = [wrote // entry for wrote in store.wrote]
        rest = [wrote - count * entry for wrote, count in zip(store.wrote, entries, strict=True)]
        print(f"\nentries written by each checkpoint {entries}, of {window}; bytes of one {entry}, others {max(rest)}")
        assert sum(entries) == done or sum(entries) == done - 1, "each chunk's entry once"
        assert max(entries) <= 2 and slab.read == sum(entries), "nor is an old one read from the device"
        assert max(rest) < 200_000, "carry, picture and names"

        again = Person(made, "b", "a storm", key=person.key)
        assert manifest is not None
        if WORLD >= 1 << 30:
            store.adopt("b", manifest, "a")
        number = max(chunk for chunk in store.marks("a"))
        past = ResumeState(api.Open("b", loaded.card.name, seed=5), progress=api.Progress(chunk=number))
        assert isinstance(await made.restore(past, manifest, again.hear), api.Opened)
        made.post(api.Resume("a"))
        await until(lambda: len(again.done) >= 2 and len(person.done) >= number + 2, within=600)
        assert again.digests()[:2] == person.digests()[number : number + 2]
        await made.close()

    run(scene())


@dataclass
class Noted:
    """A family's own entries. `read`: of each that was read, its part."""

    inner: SlabIO
    read: list[WorldPart] = field(default_factory=list)

    def read_entry(self, slot: int, entry: int) -> Copied:
        held = self.inner.read_entry(slot, entry)
        assert isinstance(held, bytes)
        self.read.append(part_of(held))
        return held

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        self.inner.write_entry(slot, entry, data)


class NotedStore(MortalStore):
    """`puts`: chunks before each checkpoint, and parts that no earlier one named."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.named: set[WorldPart] = set()
        self.puts: list[tuple[int, set[WorldPart]]] = []

    def put(
        self,
        session: str,
        body: bytes,
        number: int | None = None,
        parts: Mapping[WorldPart, bytes | None] | None = None,
        at: int = 0,
    ) -> int:
        fresh = set(parts or ()) - self.named
        self.named |= fresh
        self.puts.append((at, fresh))
        return super().put(session, body, number, parts, at)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("card", SMALL_CARDS)
def test_of_every_family_an_entry_is_read_and_written_once(card: str, tmp_path: Path) -> None:
    async def scene() -> None:
        loaded = small_card(card)
        assert loaded.card.cache is not None and loaded.slab is not None
        slab, store, window = Noted(loaded.slab), NotedStore(tmp_path), loaded.card.cache.window
        spec = EngineSpec(slots=1, checkpoint_chunks=1, checkpoint_seconds=1e9, share_cap=1.0)
        device = FakeDevice(part_of_a_chunk(loaded))
        made = engine_on(device, (replace(loaded, slab=slab),), spec, store=store)
        await made.start()
        person = Person(made, "a", loaded.card.suggestions[0], steering(loaded), others=fellows(loaded))
        assert isinstance(await person.open(card, seed=5), api.Opened)
        slab.read.clear()
        await until(lambda: len(store.puts) >= window + CHUNKS, within=600)
        puts, read, wrote = store.puts[:], slab.read[:], store.wrote[:]
        await made.close()
        assert not person.faults
        entries = [len(fresh & set(read)) for _, fresh in puts]
        chunks = [after - before for before, after in pairwise([0, *(at for at, _ in puts)])]
        print(f"\n{card}: entries written by each checkpoint {entries}, chunks since the one before {chunks}")
        owed = [int(card in FUSED), *[0] * len(puts)]
        wanted = [min(count, window) - late for count, late in zip(chunks, owed, strict=False)]
        assert entries == wanted, "those of the chunks since the last one, and the older ones not again"
        assert len(read) - sum(entries) <= 1, "nor are they read from the device again"
        rest = [size - sum(part.size for part in fresh) for size, (_, fresh) in zip(wrote, puts, strict=True)]
        assert max(rest) < 20_000, "beside new parts a manifest, and nothing that was there"

    run(scene())
