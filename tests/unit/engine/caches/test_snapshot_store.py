"""Snapshots in a folder: the newest one or the one before, never half of one, and nothing after forgetting."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from worldroom.engine.caches.entry_io import NoSlab, ReadEntries, WriteEntries, transfer
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.models import catalog
from worldroom.tests.fake_engine import toy


def test_a_snapshot_is_the_last_one_put_and_is_forgotten_without_a_trace(tmp_path: Path) -> None:
    store = SnapshotFolder(tmp_path)
    assert store.get("a/../b") is None
    store.put("a/../b", b"one")
    store.put("a/../b", b"two")
    store.put("c", b"three")
    assert (store.get("a/../b"), store.get("c")) == (b"two", b"three")
    store.forget("a/../b")
    store.forget("a/../b")
    store.forget("c")
    assert os.listdir(tmp_path) == []


def test_a_retired_snapshot_lies_on_the_disk_until_a_newer_one_comes(tmp_path: Path) -> None:
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    memory.mkdir()
    disk.mkdir()
    store = SnapshotFolder(memory, disk)
    store.retire("a")
    store.put("a", b"one")
    store.retire("a")
    assert (len(os.listdir(memory)), len(os.listdir(disk))) == (0, 1)
    assert store.get("a") == b"one"
    store.put("a", b"two")
    assert (len(os.listdir(memory)), len(os.listdir(disk))) == (1, 0)
    store.retire("a")
    store.forget("a")
    assert os.listdir(disk) == []


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
    with pytest.raises(NoSlab):
        transfer(replace(loaded, slab=None), ReadEntries(0, (0,)))


def test_what_a_card_keeps_beside_its_entries_travels_with_them() -> None:
    loaded = catalog.load("waypoint-tiny-random")
    loaded.runtime.allocate(2)
    assert loaded.slab is not None and loaded.extra is not None
    sizes = len(loaded.slab.read_entry(0, 0)), len(loaded.extra.read_extra(0))
    data = (b"\1" * sizes[0], b"\2" * sizes[0], b"\3" * sizes[1])
    assert transfer(loaded, WriteEntries(1, data)) == ()
    assert transfer(loaded, ReadEntries(1, (0, 1))) == data
    assert transfer(loaded, ReadEntries(0, (0,))) == (bytes(sizes[0]), bytes(sizes[1]))
    with pytest.raises(ValueError, match="bytes of cache are needed"):
        transfer(loaded, WriteEntries(0, (data[0], data[2][:-1])))
