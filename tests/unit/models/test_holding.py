"""How many sessions fit: the greedy count is the closed one, and nothing ever fills more than is usable."""

import random

import pytest
from worldroom.models import catalog
from worldroom.models.contract.recipe import Precision
from worldroom.models.devices import USABLE
from worldroom.models.holding import GB, CardBytes, DoesNotFit, Memory, check, empty, filled, most, room, slots

SMALL = CardBytes("small", weights=10, activations=2, session=5)


def test_by_hand() -> None:
    """90 % of 100 is 90; 10 of weights and 4 rows of 2 leave 72, which is 14 sessions of 5."""
    memory = Memory(total=100, free=90)
    assert room(memory, [SMALL]) == 80
    assert most(memory, SMALL) == 14
    assert slots(memory, [SMALL], asked=32) == (14,)
    assert slots(memory, [SMALL], asked=3) == (3,)


def test_fewer_sessions_than_rows_make_a_smaller_step() -> None:
    assert most(Memory(30, 20), SMALL) == 2, "27 usable, 10 of weights: two of 5 + 2, not three"


def test_what_others_hold_is_not_ours() -> None:
    assert most(Memory(total=100, free=40), SMALL) == int((0.9 * 50 - 10 - 8) // 5)


def test_a_session_without_memory_fits_as_often_as_asked() -> None:
    free = CardBytes("free", 0, 0, 0)
    assert most(Memory(100, 100), free) is None
    assert slots(Memory(100, 100), [free], asked=16) == (16,)


def test_cards_of_one_device_get_one_session_in_turn() -> None:
    other = CardBytes("other", weights=10, activations=1, session=10)
    assert slots(Memory(100, 80), [SMALL, other], asked=32) == (4, 4)


@pytest.mark.parametrize("seed", range(200))
def test_greedy_is_closed_and_bounded(seed: int) -> None:
    dice = random.Random(seed)
    cards = [CardBytes(str(i), dice.randrange(50), dice.randrange(9), dice.randrange(1, 30)) for i in range(3)]
    memory, rows = empty(dice.randrange(100, 2000), cards), dice.randrange(1, 6)
    alone = most(empty(memory.total, cards[:1]), cards[0], rows)
    try:
        assert slots(empty(memory.total, cards[:1]), cards[:1], 10_000, rows) == (alone,)
    except DoesNotFit:
        assert alone == 0
    try:
        counts = slots(memory, cards, 64, rows)
    except DoesNotFit:
        return
    assert sum(card.weights for card in cards) + filled(cards, counts, rows) <= USABLE * memory.total


def test_what_does_not_fit_says_what_would() -> None:
    card, footprint = catalog.card("krea-realtime-14b"), catalog.counted("krea-realtime-14b")
    assert footprint is not None
    with pytest.raises(DoesNotFit) as no:
        check(card, footprint, Precision.BF16, 48 * GB, 48 * GB)
    assert str(no.value) == (
        "not one session of 'krea-realtime-14b' fits: weights 40.2 GB, a step 2.8 GB and a session 5.7 GB need 48.7 GB,"
        " 43.2 GB of 48.0 GB are usable; what would fit: a device of 80 GB (H100 SXM)"
    )
    longlive, footprint = catalog.card("longlive-1.3b"), catalog.counted("longlive-1.3b")
    assert footprint is not None
    with pytest.raises(DoesNotFit, match="fit: --precision bf16-kv8 or --precision fp8-kv8 or a device of 48 GB"):
        check(longlive, footprint, Precision.BF16, 26 * GB, 26 * GB)
