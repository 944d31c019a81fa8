"""The interleave gate on the drive, with random weights: it asks whose numbers meet, not whether they are pretty."""

import pytest
from worldroom.models.contract.loaded import LoadedCard
from worldroom.simulation.virtual_time import run
from worldroom.tests.drive_card import drive
from worldroom.tests.interleave.scene import Wanderer, check, together

TIMES = (0.002, 0.004, 0.009)
STEPS = (1, 2, 2)


@pytest.fixture(scope="module")
def cards(one_thread: None) -> tuple[LoadedCard, LoadedCard]:
    """The card of the engine, and its twin with equal weights and a slab of its own."""
    return drive(), drive()


def interleave(cards: tuple[LoadedCard, LoadedCard], sessions: int, seed: int, chunks: int) -> None:
    card, twin = cards
    assert card.card.parity.exact
    people: list[Wanderer] = run(together(card, seed, sessions, chunks, STEPS, TIMES))
    for person in people:
        check(person, twin)
    made = [done.digest for person in people for done, _ in person.made]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize(("sessions", "chunks"), [(2, 14), (4, 5), (8, 3)])
def test_interleaved_drives_make_what_each_makes_alone(
    cards: tuple[LoadedCard, LoadedCard], sessions: int, chunks: int
) -> None:
    interleave(cards, sessions, 1, chunks)


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [2, 4, 8])
@pytest.mark.parametrize("seed", range(2, 22))
def test_longer_than_the_window_and_with_more_seeds(
    cards: tuple[LoadedCard, LoadedCard], sessions: int, seed: int
) -> None:
    window = cards[0].card.cache.window if cards[0].card.cache else 0
    interleave(cards, sessions, seed, window + 3)
