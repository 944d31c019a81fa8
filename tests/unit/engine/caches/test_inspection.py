"""An inspection takes no longer than its budget and goes on where it stopped."""

import itertools

from worldroom.engine.caches.feature_cache import FeatureCache
from worldroom.engine.caches.integrity import IntegrityCheck
from worldroom.engine.caches.slab_pool import SlabPool
from worldroom.models.contract.cache import CacheSpec


def pool(slots: int) -> SlabPool:
    made = SlabPool(CacheSpec(ring=5, bytes_per_entry=64), slots)
    for _ in range(slots):
        made.acquire()
    return made


def test_a_round_is_spread_over_visits_of_bounded_time() -> None:
    clock = itertools.count()  # a second passes whenever somebody looks
    inspection = IntegrityCheck([pool(4), pool(3), FeatureCache(4, 100)])
    for _ in range(4):
        inspection.go_on(lambda: float(next(clock)), budget=2.0)
    assert inspection.rounds == 0
    inspection.go_on(lambda: float(next(clock)), budget=2.0)
    assert (inspection.rounds, inspection.problem) == (1, None)


def test_a_slot_that_is_freed_or_taken_during_a_round_is_no_problem() -> None:
    slots = SlabPool(CacheSpec(ring=5, bytes_per_entry=64), 4)
    taken = [slots.acquire() for _ in range(4)]
    inspection = IntegrityCheck([slots])
    inspection.go_on(lambda: 0.0, budget=0.0)
    slots.free(taken[3])
    slots.free(taken[2])
    slots.acquire()
    inspection.go_on(lambda: 0.0, budget=1.0)
    assert (inspection.rounds, inspection.problem) == (1, None)


def test_what_is_wrong_is_said_and_nothing_is_sound_after_it() -> None:
    features = FeatureCache(4, 100)
    features.put("sea", "embedding", 40)
    features.bytes_used = 7
    inspection = IntegrityCheck([pool(1), features])
    for _ in range(3):
        inspection.go_on(lambda: 0.0, budget=1.0)
    assert inspection.rounds == 0
    assert inspection.problem is not None and inspection.problem.startswith("1 features hold 40 bytes, booked 7")
