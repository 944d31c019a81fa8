"""A driver puts adapters beside the world's weights: accepted, journaled, in the conditions of a chunk, told to all."""

import pytest
from worldroom.engine import api
from worldroom.sessions.journal import events
from worldroom.sessions.messages import Adapt, AdapterChoice, AdaptersChanged, Applied, Problem, Welcome
from worldroom.sessions.rooms.adapting import AdaptFailed, adapt
from worldroom.sessions.rooms.rooms import RoomsSpec
from worldroom.tests.flow.sessions.test_room_flows import House, beats, got, play

SNOW = (AdapterChoice("snow", 0.5),)
SHARES = (api.AdapterShare("key of snow", 0.5),)


def conditions(house: House) -> list[tuple[api.AdapterShare, ...]]:
    return [command.conditions.adapters for command in house.door.posted if isinstance(command, api.Begin)]


def test_a_stack_is_in_the_next_chunk_and_everybody_is_told() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        _, watching = await house.join()
        (welcome,) = got(screen, Welcome)
        assert (welcome.adapters, welcome.stack) == (("film", "snow"), ())
        await beats(3)
        driver.receive(Adapt(id=7, stack=SNOW))
        before = len(conditions(house))
        await beats(4)
        (applied,) = got(screen, Applied)
        made = conditions(house)
        assert made[applied.chunk] == SHARES and not any(made[: applied.chunk])
        assert applied.chunk <= before + 1, "within a chunk"
        for each in (screen, watching):
            assert got(each, AdaptersChanged) == [AdaptersChanged(version=1, stack=SNOW)]
        assert [event.stack for event in house.journaled(events.StackAsked)] == [SNOW]
        assert [event.shares for event in house.journaled(events.StackReady)] == [SHARES]
        _, late = await house.join()
        assert got(late, Welcome)[0].stack == SNOW
        driver.receive(Adapt(id=8))
        await beats(3)
        assert conditions(house)[-1] == ()

    play(scene)


def test_a_stack_that_cannot_be_had_leaves_the_old_one() -> None:
    async def scene(house: House) -> None:
        driver, screen = await house.join()
        watcher, watching = await house.join()
        await beats(2)
        driver.receive(Adapt(id=1, stack=SNOW))
        await beats(3)
        driver.receive(Adapt(id=2, stack=(AdapterChoice("rain"),)))
        driver.receive(Adapt(id=3, stack=(AdapterChoice("snow", 4.0),)))
        watcher.receive(Adapt(id=4))
        await beats(3)
        problems = {problem.id: problem for problem in got(screen, Problem)}
        assert problems[2].detail == "there is no adapter 'rain' here: there are film, snow"
        assert (problems[3].code, got(watching, Problem)[0].code) == ("no_compute", "not_driving")
        assert conditions(house)[-1] == SHARES

    play(scene)


def test_from_outside_a_seats_token_swaps_them_and_is_answered_by_the_chunk() -> None:
    async def scene(house: House) -> None:
        driver, _ = await house.join()
        watcher, _ = await house.join()
        await beats(2)
        (lobby,) = house.rooms.open_rooms()
        view = await adapt(lobby, driver.token, SNOW)
        assert view.stack == SNOW and conditions(house)[view.chunk] == SHARES
        for room, token, code in (
            (None, driver.token, "no_room"),
            (lobby, "forged", "no_place"),
            (lobby, watcher.token, "not_driving"),
        ):
            with pytest.raises(AdaptFailed) as refused:
                await adapt(room, token, SNOW)
            assert refused.value.code == code
        with pytest.raises(AdaptFailed, match="there is no adapter 'rain'"):
            await adapt(lobby, driver.token, (AdapterChoice("rain"),))

    play(scene)


def test_a_world_may_begin_with_a_stack_and_takes_it_along_when_it_is_suspended() -> None:
    async def scene(house: House) -> None:
        await house.join()
        await beats(3)
        assert conditions(house) and all(shares == SHARES for shares in conditions(house))
        (session,) = [room.session for room in house.rooms.open_rooms()]
        record = session.suspended()
        assert (record.adapters.version, record.adapters.stack, record.adapters.shares) == (1, SNOW, SHARES)

    play(scene, spec=RoomsSpec(card="toy", adapters=SNOW))
