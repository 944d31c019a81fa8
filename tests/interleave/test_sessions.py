"""Random sessions, deaths included, replay bit for bit in every branch. `make slow`: 100 of the toy, 20 of drive."""

import logging
from collections import Counter
from collections.abc import Iterator

import pytest
from worldroom.models import catalog
from worldroom.models.contract.loaded import LoadedCard
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import toy
from worldroom.tests.interleave.sessions_scene import KINDS, session

DRIVE_FPS = 6
"""Its chunks are computed as they are, and a session is seconds long: fewer of them, between as many acts."""


@pytest.fixture(scope="module")
def drive() -> LoadedCard:
    return catalog.load("drive")


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
    played = run(session(toy(), seed, acts))
    assert played.chunks > 50 and played.epochs > 1


@pytest.mark.parametrize("seed", [3])
def test_a_random_session_with_every_act_replays(seed: int) -> None:
    assert set(run(session(toy(), seed, acts=None)).acts) == set(KINDS)


@pytest.mark.slow
def test_a_hundred_random_sessions_of_the_toy_replay() -> None:
    """And twenty more with every kind of act, mixes among them."""
    sessions = [run(session(toy(), seed, acts=24 if seed < 100 else None)) for seed in range(120)]
    done = Counter(act for played in sessions for act in played.acts)
    assert min(done[kind] for kind in KINDS) >= 20, done


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_random_session_of_drive_replays(seed: int, drive: LoadedCard) -> None:
    played = run(session(drive, seed, acts=None, fps=DRIVE_FPS))
    assert played.chunks > 50 and set(played.acts) == set(KINDS)
