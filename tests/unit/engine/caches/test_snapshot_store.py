"""Snapshots in a folder: the newest one or the one before, never half of one, and nothing after forgetting."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from worldroom.engine.caches.entry_io import ReadEntries, WriteEntries, transfer
from worldroom.engine.caches.parts import PartLost, WorldPart, manifest_of, part_of
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.engine.caches.tier import StoreFull
from worldroom.models import catalog
from worldroom.tests.fake_engine import toy


def body(store: SnapshotFolder, session: str) -> bytes | None:
    data = store.get(session)
    return None if data is None else manifest_of(data).body


def parts(*data: bytes) -> dict[WorldPart, bytes | None]:
    return {part_of(one): one for one in data}


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.glob("*/*"))


def test_a_snapshot_is_the_last_one_put_and_is_forgotten_without_a_trace(tmp_path: Path) -> None:
    store = SnapshotFolder(tmp_path)
    assert store.get("a/../b") is None
    store.put("a/../b", b"one")
    store.put("a/../b", b"two")
    store.put("c", b"three")
    assert (body(store, "a/../b"), body(store, "c")) == (b"two", b"three")
    store.forget("a/../b")
    store.forget("a/../b")
    store.forget("c")
    assert os.listdir(tmp_path) == [] and store.bytes_used == (0, 0)


def test_a_part_is_written_once_and_goes_with_the_last_checkpoint_that_names_it(tmp_path: Path) -> None:
    store = SnapshotFolder(tmp_path)
    old, kept, new = (bytes([n]) * 1000 for n in range(3))
    first = store.put("a", b"1", 1, parts(old, kept))
    second = store.put("a", b"2", 2, {part_of(kept): None, part_of(new): new})
    assert 2000 < first < 2300 and 1000 < second < 1300, "the entry that was there is not written again"
    assert files(tmp_path) == [".mark", ".mark", ".part", ".part", ".part", ".world"]
    marked = store.marked("a", 1)
    assert marked is not None and [store.read("a", part) for part in manifest_of(marked[1]).parts] == [old, kept]
    store.put("b", b"1", parts=parts(new))
    store.put("b", b"2", parts=parts(kept))
    assert store.read("b", part_of(kept)) == kept
    with pytest.raises(PartLost, match="of a world is gone"):
        store.read("b", part_of(new))
    with pytest.raises(PartLost, match="was to be here and is not"):
        store.put("b", b"3", parts={part_of(old): None})
    assert body(store, "b") == b"2"


def test_a_part_that_is_not_what_it_was_is_found_by_its_digest(tmp_path: Path) -> None:
    store = SnapshotFolder(tmp_path)
    store.put("a", b"1", parts=parts(b"entry"))
    (path,) = tmp_path.glob("*/*.part")
    path.write_bytes(b"Entry")
    with pytest.raises(PartLost, match="of 5 bytes is now"):
        store.read("a", part_of(b"entry"))


def test_what_lies_on_the_disk_outlives_the_memory_and_is_not_written_twice(tmp_path: Path) -> None:
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    store = SnapshotFolder(memory, disk)
    assert store.persist("a") == 0
    store.put("a", b"1", parts=parts(b"x" * 1000, b"y" * 1000))
    assert 2000 < store.persist("a") < 2300
    store.put("a", b"2", parts=parts(b"y" * 1000, b"z" * 1000))
    assert 1000 < store.persist("a") < 1300
    shutil.rmtree(memory)
    again = SnapshotFolder(memory, disk)
    assert body(again, "a") == b"2" and again.bytes_used == (0, store.bytes_used[1])
    assert again.read("a", part_of(b"z" * 1000)) == b"z" * 1000
    assert files(disk) == [".part", ".part", ".world"]
    again.sweep(before=0.0)
    assert body(again, "a") == b"2"
    again.sweep(before=1e12)
    assert again.get("a") is None and again.bytes_used == (0, 0)


def test_a_retired_snapshot_lies_on_the_disk_alone(tmp_path: Path) -> None:
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    store = SnapshotFolder(memory, disk)
    store.retire("a")
    store.put("a", b"one", parts=parts(b"entry"))
    store.retire("a")
    assert (files(memory), files(disk)) == ([], [".part", ".world"])
    assert body(store, "a") == b"one" and store.read("a", part_of(b"entry")) == b"entry"
    store.put("a", b"two", parts=parts(b"entry"))
    assert body(store, "a") == b"two"
    store.retire("a")
    store.forget("a")
    assert os.listdir(disk) == os.listdir(memory) == []


def test_beyond_its_budget_a_world_goes_to_the_disk_then_gives_up_its_way_back_then_is_refused(tmp_path: Path) -> None:
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    store = SnapshotFolder(memory, disk, 3000, 2500)
    for number in (1, 2):
        store.put("a", b"", number, parts(bytes([number]) * 1000))
    assert store.marks("a") == [1, 2]
    store.put("a", b"", 3, parts(b"x" * 2000))
    assert files(disk) == [".part"], "it lies where there is room"
    store.put("a", b"", 4, parts(b"y" * 1500))
    assert store.marks("a") == [2, 3, 4]
    with pytest.raises(StoreFull, match=r"9\d\d\d bytes of session a's world do not fit: \d+ of 2500 are used"):
        store.put("a", b"", 5, parts(b"z" * 9000))
    assert store.read("a", part_of(b"y" * 1500)) and sum(store.bytes_used) < 3000 + 2500


def test_a_fork_shares_the_parts_of_its_origin_and_outlives_it(tmp_path: Path) -> None:
    store = SnapshotFolder(tmp_path / "memory", tmp_path / "disk")
    store.put("a", b"1", 1, parts(b"x" * 1000))
    mark = store.marked("a", 1)
    assert mark is not None
    store.adopt("fork", mark[1], "a")
    inodes = {path.stat().st_ino for path in (tmp_path / "memory").glob("*/*.part")}
    assert len(inodes) == 1, "another name of the same file"
    store.forget("a")
    assert store.read("fork", part_of(b"x" * 1000)) == b"x" * 1000
    with pytest.raises(PartLost):
        store.adopt("other", mark[1], "a")


@pytest.mark.parametrize("with_disk", [True, False])
def test_a_world_that_is_set_aside_is_restored_by_another_server(with_disk: bool, tmp_path: Path) -> None:
    disk = tmp_path / "disk" if with_disk else None
    store = SnapshotFolder(tmp_path / "memory", disk)
    assert store.set_aside("a") is None
    store.put("a", b"1", 1, parts(b"x" * 1000))
    aside = store.set_aside("a")
    assert aside is not None
    store.forget("a")
    later = SnapshotFolder(tmp_path / "other memory", disk)
    name, manifest = aside
    assert len(manifest) < 300 if with_disk else len(manifest) > 1000
    later.adopt("b", manifest, name)
    assert later.read("b", part_of(b"x" * 1000)) == b"x" * 1000 and body(later, "b") == b"1"


def test_cache_entries_come_back_in_another_slot() -> None:
    loaded = toy()
    loaded.runtime.allocate(2)
    data = (b"\1" * 64, b"\2" * 64, b"\3" * 64)
    assert transfer(loaded, WriteEntries(1, data)) == ()
    assert transfer(loaded, ReadEntries(1, (2, 0, 1))) == (data[2], data[0], data[1])
    assert transfer(loaded, ReadEntries(0, (0,))) == (bytes(64),)


def test_an_entry_of_the_wrong_size_is_refused() -> None:
    loaded = toy()
    loaded.runtime.allocate(1)
    with pytest.raises(ValueError, match="a cache entry of toy has 64 bytes, got 8"):
        transfer(loaded, WriteEntries(0, (bytes(8),)))
    with pytest.raises(RuntimeError, match="cannot be read or written"):
        transfer(replace(loaded, slab=None), ReadEntries(0, (0,)))


def test_what_a_card_keeps_beside_its_entries_travels_with_them() -> None:
    loaded = catalog.load("waypoint-tiny-random")
    loaded.runtime.allocate(2)
    assert loaded.slab is not None and loaded.extra is not None
    frames = [len(frame) for frame in loaded.extra.read_extra(0) if isinstance(frame, bytes)]
    entry = loaded.slab.read_entry(0, 0)
    assert isinstance(entry, bytes) and len(frames) > 1
    sizes = (len(entry), *frames)
    data = (b"\1" * sizes[0], b"\2" * sizes[0], *(bytes([3 + at]) * size for at, size in enumerate(frames)))
    assert transfer(loaded, WriteEntries(1, data[:2], extra=data[2:])) == ()
    assert transfer(loaded, ReadEntries(1, (0, 1))) == data
    assert transfer(loaded, ReadEntries(0, (0,))) == (bytes(sizes[0]), *map(bytes, sizes[1:]))
    with pytest.raises(ValueError, match="bytes of cache are needed"):
        transfer(loaded, WriteEntries(0, data[:1], extra=(data[2][:-1], *data[3:])))
