"""A checkpoint reads and writes what is new since the last one, however large a world is; virtual time.

WORLDROOM_WORLD_GIB=7 runs the same with a simulated world of that size: real bytes through digest, folder and back.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from worldroom.engine import api
from worldroom.engine.session.resume_state import ResumeState
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loaded import Copied, LoadedCard, SlabIO
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, Person, engine_on, steady, toy, until
from worldroom.tests.mortal_store import MortalStore

WORLD = int(float(os.environ.get("WORLDROOM_WORLD_GIB", "0.01")) * (1 << 30))
CHUNKS = 3


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
