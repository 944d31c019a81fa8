"""Random sessions, deaths included, replay bit for bit in every branch. `make slow`: 100 of the toy, 20 of drive."""

import logging
from collections.abc import Iterator

import pytest
from worldroom.models import catalog
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import toy
from worldroom.tests.interleave.sessions_scene import session


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A death is logged; in these sessions people and workers die all the time."""
    ours = logging.getLogger("worldroom")
    before = ours.level
    ours.setLevel(logging.CRITICAL)
    yield
    ours.setLevel(before)


@pytest.mark.parametrize(("seed", "acts"), [(0, 16), (1, 16), (36, 24)])
def test_a_random_session_of_the_toy_replays(seed: int, acts: int) -> None:
    """Seed 36 goes back over a restart that was written down before its first chunk."""
    chunks, epochs = run(session(toy(), seed, acts))
    assert chunks > 50 and epochs > 1


@pytest.mark.slow
def test_a_hundred_random_sessions_of_the_toy_replay() -> None:
    for seed in range(100):
        run(session(toy(), seed, acts=24))


@pytest.mark.slow
def test_twenty_random_sessions_of_drive_replay() -> None:
    card = catalog.load("drive")
    for seed in range(20):
        run(session(card, seed, acts=12))
