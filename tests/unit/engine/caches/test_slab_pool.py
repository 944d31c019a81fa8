"""Slab bookkeeping is a ring with one entry always free; features are shared by content and bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worldroom.engine.caches.feature_cache import FeatureCache, UnknownFeature
from worldroom.engine.caches.slab_pool import CacheSlot, PoolCorrupt, PoolFull, SlabPool
from worldroom.models.contract.cache import CacheSpec, CacheView


def pool(ring: int = 5, slots: int = 2) -> SlabPool:
    return SlabPool(CacheSpec(ring=ring, bytes_per_entry=100), slots)


def write(slot: CacheSlot, times: int) -> None:
    for _ in range(times):
        slot.stage()
        slot.commit()


def test_chunks_fill_the_ring_and_the_oldest_falls_out() -> None:
    slab = pool(ring=5)
    slot = slab.acquire()
    assert slot.view() == CacheView(0, (), 0)
    write(slot, 4)
    assert slot.view() == CacheView(0, (0, 1, 2, 3), 4)
    write(slot, 1)
    assert slot.view() == CacheView(0, (1, 2, 3, 4), 0)
    assert slot.count == 5


def test_a_rolled_back_write_leaves_no_trace() -> None:
    slab = pool()
    slot = slab.acquire()
    write(slot, 3)
    before = slot.view()
    slot.stage()
    slot.rollback()
    assert slot.view() == before
    slot.commit()
    assert slot.count == 3


def test_a_second_staged_write_and_freeing_a_staged_slot_are_corruption() -> None:
    slab = pool()
    slot = slab.acquire()
    slot.stage()
    with pytest.raises(PoolCorrupt, match="second write"):
        slot.stage()
    with pytest.raises(PoolCorrupt, match="while a write is staged"):
        slab.free(slot)


def test_bytes_follow_the_slots_and_the_lowest_free_slot_is_reused() -> None:
    slab = pool(slots=2)
    first, second = slab.acquire(), slab.acquire()
    assert (first.number, second.number) == (0, 1)
    assert (slab.bytes_used, slab.bytes_budget) == (1000, 1000)
    with pytest.raises(PoolFull, match="all 2 slots are taken"):
        slab.acquire()
    slab.free(first)
    assert (slab.acquire().number, slab.bytes_used) == (0, 1000)


def test_a_reused_slot_starts_empty() -> None:
    slab = pool()
    slot = slab.acquire()
    write(slot, 3)
    slab.free(slot)
    assert slab.acquire().view() == CacheView(0, (), 0)


def test_who_freed_a_slot_can_neither_use_it_nor_free_it_again() -> None:
    slab = pool()
    slot = slab.acquire()
    slab.free(slot)
    slab.acquire()
    for use in (slot.view, slot.commit):
        with pytest.raises(PoolCorrupt, match="used after it was freed"):
            use()
    with pytest.raises(PoolCorrupt, match="slot 0 is not taken"):
        slab.free(slot)


@given(st.integers(2, 6), st.lists(st.sampled_from(["stage", "commit", "rollback", "reset"]), max_size=60))
def test_any_sequence_of_writes_keeps_the_invariants(ring: int, acts: list[str]) -> None:
    slab = pool(ring=ring)
    slot, staged, written = slab.acquire(), False, 0
    for act in acts:
        match act:
            case "stage" if not staged:
                slot.stage()
                staged = True
            case "commit":
                slot.commit()
                written, staged = written + staged, False
            case "rollback":
                slot.rollback()
                staged = False
            case "reset":
                slot.restore(0)
                written, staged = 0, False
        view = slot.view()
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
