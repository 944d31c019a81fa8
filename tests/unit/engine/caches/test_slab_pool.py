"""Slab bookkeeping is a ring with one entry always free; features are shared by content and bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worldroom.engine.caches.feature_cache import FeatureCache, UnknownFeature
from worldroom.engine.caches.slab_pool import PoolCorrupt, PoolFull, SlabPool
from worldroom.models.contract.cache import CacheSpec, CacheView


def pool(ring: int = 5, slots: int = 2) -> SlabPool:
    return SlabPool(CacheSpec(ring=ring, bytes_per_entry=100), slots)


def write(slab: SlabPool, slot: int, times: int) -> None:
    for _ in range(times):
        slab.stage(slot)
        slab.commit(slot)


def test_chunks_fill_the_ring_and_the_oldest_falls_out() -> None:
    slab = pool(ring=5)
    slot = slab.acquire()
    assert slab.view(slot) == CacheView(0, (), 0)
    write(slab, slot, 4)
    assert slab.view(slot) == CacheView(0, (0, 1, 2, 3), 4)
    write(slab, slot, 1)
    assert slab.view(slot) == CacheView(0, (1, 2, 3, 4), 0)
    assert slab.count(slot) == 5


def test_a_rolled_back_write_leaves_no_trace() -> None:
    slab = pool()
    slot = slab.acquire()
    write(slab, slot, 3)
    before = slab.view(slot)
    slab.stage(slot)
    slab.rollback(slot)
    assert slab.view(slot) == before
    slab.commit(slot)
    assert slab.count(slot) == 3


def test_a_second_staged_write_and_freeing_a_staged_slot_are_corruption() -> None:
    slab = pool()
    slot = slab.acquire()
    slab.stage(slot)
    with pytest.raises(PoolCorrupt, match="second write"):
        slab.stage(slot)
    with pytest.raises(PoolCorrupt, match="while a write is staged"):
        slab.free(slot)


def test_bytes_follow_the_slots_and_the_lowest_free_slot_is_reused() -> None:
    slab = pool(slots=2)
    assert (slab.acquire(), slab.acquire()) == (0, 1)
    assert (slab.bytes_used, slab.bytes_budget) == (1000, 1000)
    with pytest.raises(PoolFull, match="all 2 slots are taken"):
        slab.acquire()
    slab.free(0)
    assert (slab.acquire(), slab.bytes_used) == (0, 1000)


def test_a_reused_slot_starts_empty() -> None:
    slab = pool()
    slot = slab.acquire()
    write(slab, slot, 3)
    slab.free(slot)
    assert slab.view(slab.acquire()) == CacheView(0, (), 0)


@given(st.integers(2, 6), st.lists(st.sampled_from(["stage", "commit", "rollback", "reset"]), max_size=60))
def test_any_sequence_of_writes_keeps_the_invariants(ring: int, acts: list[str]) -> None:
    slab = pool(ring=ring)
    slot, staged, written = slab.acquire(), False, 0
    for act in acts:
        match act:
            case "stage" if not staged:
                slab.stage(slot)
                staged = True
            case "commit":
                slab.commit(slot)
                written, staged = written + staged, False
            case "rollback":
                slab.rollback(slot)
                staged = False
            case "reset":
                slab.reset(slot)
                written, staged = 0, False
        view = slab.view(slot)
        slab.check_integrity()
        assert view.staged not in view.committed
        assert len(view.committed) == min(written, ring - 1)


def test_features_are_counted_and_only_unused_ones_make_room() -> None:
    cache = FeatureCache(entries_max=2, bytes_max=100)
    cache.put("sea", "embedding of sea", 40)
    cache.put("dunes", "embedding of dunes", 40)
    with pytest.raises(PoolFull, match="2 of 2 features and 80 of 100 bytes"):
        cache.put("snow", "embedding of snow", 40)
    cache.release("sea")
    cache.put("snow", "embedding of snow", 40)
    assert cache.get("snow") == "embedding of snow"
    with pytest.raises(UnknownFeature):
        cache.get("sea")
    assert (cache.entries, cache.bytes_used) == (2, 80)
    cache.check_integrity()


def test_an_unused_feature_stays_for_whoever_asks_next() -> None:
    cache = FeatureCache(entries_max=2, bytes_max=100)
    cache.put("sea", 1, 10)
    cache.release("sea")
    assert cache.in_use == 0
    assert cache.retain("sea")
    assert cache.in_use == 1
    assert not cache.retain("dunes")


def test_bytes_bound_the_features_too() -> None:
    cache = FeatureCache(entries_max=100, bytes_max=100)
    cache.put("a", 1, 60)
    cache.release("a")
    cache.put("b", 2, 60)
    assert (cache.entries, cache.bytes_used) == (1, 60)
