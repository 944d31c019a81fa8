"""The interleave gate on the toy: sessions that share a device make exactly what each makes alone.

The toy's latents depend on every commit, on the order of the cache and on the noise, so any leak changes every later
digest. What it makes alone is asked twice: of its own loop without the engine, and of the golden, which shares no code.
"""

import itertools

import pytest
from worldroom.engine import api
from worldroom.engine.session.world import SessionWorld
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.placement import Placement
from worldroom.models.toy import golden
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, narrated, started, steady, toy, until
from worldroom.tests.interleave.scene import Wanderer, check, together

SESSIONS = (2, 4, 8)
CHUNKS = 16
TIMES = (0.0002, 0.001, 0.003)
SLOW_TIMES = (0.002, 0.006, 0.010)
SHORT, LONG = range(20), range(20, 200)


def interleave(sessions: int, seed: int) -> list[Wanderer]:
    per_chunk = 1 + 3 * (seed % 4 == 3)
    people: list[Wanderer] = run(
        together(toy(per_chunk=per_chunk), seed, sessions, CHUNKS, (1, 2, 4), TIMES),
    )
    twin = toy(per_chunk=per_chunk)
    for person in people:
        check(person, twin)
        check_golden(person, per_chunk)
    return people


def interleave_ahead(sessions: int, seed: int) -> list[Wanderer]:
    """Chunks take longer than they last, pictures are made beside: worlds go on before they have them."""
    per_chunk = 1 + seed % 2
    card = toy(60, per_chunk, Placement.AUX)
    people: list[Wanderer] = run(together(card, seed, sessions, CHUNKS, (1, 2), SLOW_TIMES))
    for person in people:
        check(person, toy(60, per_chunk))
    return people


def interleave_narrated(sessions: int, seed: int) -> list[Wanderer]:
    """Two loops on one instance: a narrator writes the next prompt while chunks are made, of everybody in one queue."""
    where = Placement.AUX if seed % 3 == 2 else Placement.DEVICE
    people: list[Wanderer] = run(together(narrated(decode=where), seed, sessions, CHUNKS, (1, 2), TIMES))
    for person in people:
        check(person, narrated())
        check_golden(person, 1, narrates=True)
    return people


def check_golden(person: Wanderer, per_chunk: int, narrates: bool = False) -> None:
    for seed, made in person.lived():
        inputs = [
            golden.GoldenInput(conditions.controls, person.texts_of(conditions), conditions.input_seq)  # type: ignore[arg-type]
            for _, conditions in made
        ]
        expected = golden.run(seed, 0, person.steps, 24, per_chunk, inputs, made[0][0].chunk, narrates)
        assert [done.digest for done, _ in made] == [chunk.digest for chunk in expected]


@pytest.mark.parametrize("sessions", SESSIONS)
@pytest.mark.parametrize("seed", SHORT)
def test_interleaved_sessions_make_what_each_makes_alone(sessions: int, seed: int) -> None:
    interleave(sessions, seed)


@pytest.mark.parametrize("sessions", SESSIONS)
@pytest.mark.parametrize("seed", range(10))
def test_worlds_that_are_ahead_of_their_pictures_make_what_each_makes_alone(sessions: int, seed: int) -> None:
    interleave_ahead(sessions, seed)


@pytest.mark.parametrize("sessions", SESSIONS)
@pytest.mark.parametrize("seed", range(10))
def test_two_loops_of_one_card_make_what_they_make_alone(sessions: int, seed: int) -> None:
    interleave_narrated(sessions, seed)


def test_both_loops_share_batches_with_those_of_other_sessions() -> None:
    """In the gate above steps of two loops take turns, and tokens of several narrators run as one batch."""

    async def scene() -> list[tuple[StepKind, int]]:
        engine, device = await started(steady(0.001), (narrated(),), EngineSpec(slots=4, share_cap=1.0))
        people = [Person(engine, f"s{n}") for n in range(4)]
        for person in people:
            assert isinstance(await person.open("toy-narrated"), api.Opened)
        before = len(device.ran)
        await until(lambda: all(len(person.done) >= 12 for person in people))
        await engine.close()
        return device.ran[before:]

    ran = run(scene())
    kinds = [kind for kind, _ in ran]
    turns = sum(a is StepKind.TOKEN and b is StepKind.DENOISE for a, b in itertools.pairwise(kinds))
    assert turns > 2 and max(rows for kind, rows in ran if kind is StepKind.TOKEN) > 1


@pytest.mark.slow
@pytest.mark.parametrize("sessions", SESSIONS)
@pytest.mark.parametrize("seed", range(10, 200))
def test_the_other_seeds_of_two_loops(sessions: int, seed: int) -> None:
    interleave_narrated(sessions, seed)


def test_the_gate_sees_worlds_that_are_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[int] = []
    go_on = SessionWorld.go_on
    monkeypatch.setattr(SessionWorld, "go_on", lambda world, carry: (gone.append(world.number), go_on(world, carry)))
    people = [person for seed in range(4) for person in interleave_ahead(2, seed)]
    assert len(gone) > 50
    assert sum(person.cancelled for person in people) > 10
    assert sum(len([*person.lived()]) > 1 for person in people) > 3


@pytest.mark.slow
@pytest.mark.parametrize("sessions", SESSIONS)
@pytest.mark.parametrize("seed", range(10, 200))
def test_the_other_seeds_of_worlds_that_are_ahead(sessions: int, seed: int) -> None:
    interleave_ahead(sessions, seed)


@pytest.mark.slow
@pytest.mark.parametrize("sessions", SESSIONS)
@pytest.mark.parametrize("seed", LONG)
def test_the_other_seeds_of_two_hundred(sessions: int, seed: int) -> None:
    interleave(sessions, seed)


def test_the_gate_is_as_rough_as_it_says() -> None:
    """Acts land while the device is busy, by construction; here they also cancel, restart and change prompts."""
    people = [person for seed in range(4) for person in interleave(4, seed)]
    assert sum(person.acts for person in people) > 150
    assert sum(person.cancelled for person in people) > 50
    assert sum(len([*person.lived()]) > 1 for person in people) > 8
    assert sum(len(set(person.keys.values())) > 1 for person in people) > 8


def test_the_gate_would_notice_a_cache_that_keeps_what_was_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback that commits instead must be seen, or the gate above proves nothing."""
    from worldroom.engine.caches import slab_pool

    monkeypatch.setattr(slab_pool.CacheSlot, "rollback", slab_pool.CacheSlot.commit)
    with pytest.raises(AssertionError):
        for seed in range(10):
            interleave(2, seed)
