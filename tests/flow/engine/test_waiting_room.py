"""A full device in virtual time: who waits keeps a place, gets the slot the moment it frees, and nobody overtakes."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from worldroom.engine import api
from worldroom.engine.admission.wait_queue import PLACES_MAX
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started, steady


def play(scene: Callable[[], Awaitable[None]]) -> None:
    run(scene())


def now() -> float:
    return asyncio.get_running_loop().time()


async def ask(engine: Engine, name: str) -> api.Opened | api.Refused:
    """One attempt of who waits under that name, as a new session."""
    return await Person(engine, f"{name}-{now():.3f}").open(line=name)


async def patient(engine: Engine, name: str) -> tuple[Person, float, list[int]]:
    """Ask again and again as told; who it became, when it came in and the places it was told."""
    places: list[int] = []
    while True:
        person = Person(engine, f"{name}-{now():.3f}")
        answer = await person.open(line=name)
        if isinstance(answer, api.Opened):
            return person, now(), places
        places.append(answer.queue_place)
        await asyncio.sleep(answer.retry_after_s)


async def closed(engine: Engine, *people: Person) -> None:
    for person in people:
        engine.post(api.Close(person.session))
    await asyncio.sleep(6)
    assert [(c.sessions, c.pool_bytes_used, c.waiting) for c in engine.capacity()] == [(0, 0, 0)]
    await engine.close()


def test_the_slot_is_handed_over_the_moment_it_frees_in_the_order_of_the_line() -> None:
    async def scene() -> None:
        engine, _ = await started(spec=EngineSpec(slots=1))
        first = Person(engine, "first")
        await first.open()
        waiting = [asyncio.create_task(patient(engine, name)) for name in ("a", "b", "c")]
        await asyncio.sleep(2.1)
        assert engine.capacity()[0].waiting == 3
        for turn, holder in enumerate([first.session, None, None]):
            last = waiting[turn - 1].result()[0].session if turn else holder
            assert last is not None
            engine.post(api.Close(last))
            freed = now()
            person, came, _ = await waiting[turn]
            assert came - freed < 0.05, "no poll in between"
            await asyncio.sleep(1)
            assert person.frames
            assert not any(task.done() for task in waiting[turn + 1 :])
            await asyncio.sleep(1.3)
        assert set(waiting[0].result()[2]) == {1}
        places = waiting[2].result()[2]
        assert (places[0], places[-1]) == (3, 1)
        assert places == sorted(places, reverse=True)
        await closed(engine, waiting[2].result()[0])

    play(scene)


def test_a_place_that_moves_is_told_at_once() -> None:
    async def scene() -> None:
        engine, _ = await started(spec=EngineSpec(slots=1))
        first = Person(engine, "first")
        await first.open()
        assert isinstance(await ask(engine, "a"), api.Refused)
        asked = now()
        second = await ask(engine, "b")
        assert isinstance(second, api.Refused)
        assert (second.queue_place, second.retry_after_s) == (2, 0.2)
        await asyncio.sleep(2)
        moved = await ask(engine, "b")  # held; "a" never comes back
        assert isinstance(moved, api.Refused)
        assert moved.queue_place == 1
        assert 5.0 < now() - asked < 5.3, "as soon as the place of the other is forgotten"
        await closed(engine, first)

    play(scene)


def test_a_newcomer_does_not_overtake_who_is_between_two_attempts() -> None:
    async def scene() -> None:
        engine, _ = await started(spec=EngineSpec(slots=1))
        first = Person(engine, "first")
        await first.open()
        assert isinstance(await ask(engine, "a"), api.Refused)
        engine.post(api.Close("first"))
        await asyncio.sleep(0.3)
        assert engine.capacity()[0].sessions == 0
        newcomer = await Person(engine, "newcomer").open()
        assert isinstance(newcomer, api.Refused)
        assert (newcomer.reason, newcomer.queue_place) == (api.RefusalReason.NO_SLOT, 0)
        assert isinstance(await ask(engine, "a"), api.Opened)
        await engine.close()

    play(scene)


def test_who_closes_while_it_waits_leaves_the_line() -> None:
    async def scene() -> None:
        engine, _ = await started(spec=EngineSpec(slots=1))
        first = Person(engine, "first")
        await first.open()
        await ask(engine, "a")
        waiting = asyncio.create_task(Person(engine, "again").open(line="a"))
        await asyncio.sleep(1)
        engine.post(api.Close("again"))
        refused = await waiting
        assert isinstance(refused, api.Refused)
        assert refused.reason is api.RefusalReason.CONFLICT
        assert engine.capacity()[0].waiting == 0
        await closed(engine, first)

    play(scene)


def test_the_line_has_an_end() -> None:
    async def scene() -> None:
        engine, _ = await started(spec=EngineSpec(slots=1))
        first = Person(engine, "first")
        await first.open()
        answers = [await ask(engine, f"n{number}") for number in range(PLACES_MAX + 1)]
        assert [answer.queue_place for answer in answers if isinstance(answer, api.Refused)] == [
            *range(1, PLACES_MAX + 1),
            0,
        ]
        assert isinstance(answers[-1], api.Refused)
        assert answers[-1].retry_after_s == 30.0
        await closed(engine, first)

    play(scene)


@pytest.mark.parametrize(("asked", "let_in_with"), [(None, 1), (2, None)])
def test_a_cheaper_recipe_is_taken_before_a_refusal_unless_the_steps_were_asked_for(
    asked: int | None, let_in_with: int | None
) -> None:
    async def scene() -> None:
        # 5 ms a step: 20 ms a chunk of 2 denoise steps, 15 ms of 1; a chunk lasts 41.7 ms, 90 % are given away.
        engine, _ = await started(steady(0.005))
        first = Person(engine, "first")
        await first.open()
        second = Person(engine, "second")
        answer = await second.open(steps=asked)
        assert engine.capacity()[0].degraded == (let_in_with is not None)
        if let_in_with is None:
            assert isinstance(answer, api.Refused)
            assert answer.reason is api.RefusalReason.NO_COMPUTE
            assert answer.figures is not None and answer.figures.unit is api.Unit.SHARE
            assert answer.figures.needed == pytest.approx(0.48)
        else:
            assert isinstance(answer, api.Opened)
            assert answer.steps == let_in_with
            await asyncio.sleep(2)
            late = [done for _, done in (*first.done[24:], *second.done[24:]) if done.late_us > 2000]
            assert late == []
        await closed(engine, first, second)

    play(scene)
