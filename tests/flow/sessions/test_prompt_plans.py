"""Prompts that mix several texts and wait for their chunk, on the real engine: what steers, and that it replays."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from worldroom.models.contract.loaded import LoadedCard
from worldroom.sessions.journal import events
from worldroom.sessions.journal.replay import read, replay
from worldroom.sessions.messages import (
    Applied,
    PlannedView,
    Problem,
    Prompt,
    PromptChanged,
    PromptsPlanned,
    ResetWorld,
    Transition,
    WeighedText,
    Welcome,
)
from worldroom.simulation.virtual_time import run
from worldroom.tests.drive_card import drive
from worldroom.tests.fake_door import Screen
from worldroom.tests.fake_engine import toy
from worldroom.tests.real_rooms import Server, stream

CARDS = pytest.mark.parametrize("card", [toy, drive], ids=["toy", "drive"])
NIGHT, RAIN = WeighedText("night", 2.0), WeighedText("rain")


async def chunks(server: Server, count: int) -> int:
    """So many more chunks begin; the number of the next one."""
    until = server.rooms.views()[0].chunk + count
    while server.rooms.views()[0].chunk < until:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return until


def shares(server: Server, screen: Screen, version: int) -> list[list[float]]:
    """The weights of each chunk that began under that version, in the order of its texts."""
    begun = [event.conditions for event in server.events(screen) if isinstance(event, events.ChunkBegun)]
    under = [conditions for conditions in begun if conditions.prompt_version == version]
    return [[round(share.weight, 4) for share in conditions.prompts] for conditions in under]


def problems(screen: Screen) -> list[Problem]:
    return [message for message in screen.messages if isinstance(message, Problem)]


async def same_again(server: Server, screen: Screen) -> int:
    """How many chunks of the journal were made again, each bit for bit."""
    replayed = await replay(server.engine, await read(stream(server.events(screen))), "again")
    assert replayed.mismatches == ()
    return replayed.chunks


@CARDS
def test_a_mix_comes_over_chunks_and_others_at_theirs_after_an_absence(card: Callable[[], LoadedCard]) -> None:
    async def main() -> None:
        server = Server()
        await server.start(card())
        driver, screen = await server.join()
        await chunks(server, 2)
        driver.receive(Prompt(id=1, text="sand", others=(NIGHT, RAIN), over=2))
        now = await chunks(server, 5)
        driver.receive(Prompt(id=2, text="dusk", transition=Transition.CUT, at=now + 4))
        driver.receive(Prompt(id=3, text="fog", others=(NIGHT,), at=now + 6, over=2))
        await chunks(server, 2)
        driver.leave()
        await asyncio.sleep(2.0)
        driver, back = await server.join(driver.token)
        await chunks(server, 8)

        mix, dusk, fog = 4, 5, 7
        assert shares(server, screen, mix)[:3] == [[0.5, 0.125, 0.25, 0.125], [0.25, 0.5, 0.25], [0.25, 0.5, 0.25]]
        assert shares(server, screen, dusk) == [[1.0], [1.0]]
        assert shares(server, screen, fog)[:3] == [[0.5, 0.1667, 0.3333], [0.3333, 0.6667], [0.3333, 0.6667]]
        starts = [event for event in server.events(screen) if isinstance(event, events.SegmentStarted)]
        assert [(start.chunk, start.prompt_version) for start in starts][-2:] == [(now + 4, dusk), (now + 6, fog)]
        changed = [message for message in back.messages if isinstance(message, PromptChanged)]
        assert [(each.version, each.others) for each in changed] == [(mix, (NIGHT, RAIN)), (dusk, ()), (fog, (NIGHT,))]
        assert problems(screen) + problems(back) == []
        driver.leave()
        assert await same_again(server, screen) >= now + 10
        await server.stop()

    run(main())


@CARDS
def test_a_plan_outlives_a_new_epoch_and_a_later_prompt_overtakes_it(card: Callable[[], LoadedCard]) -> None:
    async def main() -> None:
        server = Server()
        await server.start(card())
        driver, screen = await server.join()
        now = await chunks(server, 6)
        driver.receive(Prompt(id=1, text="dusk", others=(RAIN,), at=now + 60, transition=Transition.CUT))
        await chunks(server, 2)
        driver.receive(ResetWorld(id=2))
        driver.receive(Prompt(id=3, text="sand", others=(NIGHT,), at=now + 5, over=0))
        await asyncio.sleep(12 * seconds(server))
        assert answers(screen) == [(2, now + 2), (3, now + 5)]
        assert [(problem.code, problem.id) for problem in problems(screen)] == [("overtaken", 1)]
        assert shares(server, screen, 3) == [] and shares(server, screen, 5)[0] == [0.3333, 0.6667]
        driver.leave()
        assert await same_again(server, screen) >= 6
        await server.stop()

    run(main())


def seconds(server: Server) -> float:
    """A chunk lasts so long."""
    card = server.engine.cards()[0]
    return card.frames_per_chunk / card.fps


def answers(screen: Screen) -> list[tuple[int, int]]:
    return [(message.id, message.chunk) for message in screen.messages if isinstance(message, Applied)]


def test_a_world_that_mixes_nothing_says_so_and_a_mix_of_which_one_text_is_none_changes_nothing() -> None:
    async def main() -> None:
        server, loaded = Server(), toy()
        await server.start(replace(loaded, card=replace(loaded.card, prompts_max=1)))
        driver, screen = await server.join()
        await chunks(server, 2)
        driver.receive(Prompt(id=1, text="sand", others=(NIGHT,)))
        driver.receive(Prompt(id=2, text="sand", others=(WeighedText("  "),)))
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome) and welcome.prompts_max == 1
        assert [(problem.code, problem.id) for problem in problems(screen)] == [("no_mix", 1), ("empty_prompt", 2)]
        await asyncio.sleep(2.0)
        now = await chunks(server, 1)
        driver.receive(Prompt(id=3, text="dusk", at=now + 4))
        for id in range(4, 8):
            driver.receive(Prompt(id=id, text="fog", at=10_000))
        await chunks(server, 8)
        assert (problems(screen)[-1].code, problems(screen)[-1].id) == ("busy", 7)
        assert (3, now + 4) in answers(screen)
        assert [version for version in (1, 2) if shares(server, screen, version)] == [1, 2]
        await server.stop()

    run(main())


def test_what_waits_for_its_chunk_is_told_to_everybody_and_to_who_comes_back() -> None:
    async def main() -> None:
        server = Server()
        await server.start()
        driver, screen = await server.join()
        watcher, seen = await server.join()
        await chunks(server, 4)
        now = server.rooms.views()[0].chunk
        driver.receive(Prompt(1, "dusk", Transition.CUT, at=now + 60))
        driver.receive(Prompt(2, "snow", Transition.CUT, at=now + 30, others=(NIGHT,)))
        later, sooner = PlannedView(2, now + 60, "dusk"), PlannedView(4, now + 30, "snow", others=(NIGHT,))
        assert planned(seen) == planned(screen) == [(later,), (sooner, later)]
        watcher.leave()
        _, back = await server.join(watcher.token)
        assert planned(back) == [(sooner, later)], "before anything else happens"
        await chunks(server, 40)
        assert planned(screen)[2:] == [()], "the one that was asked first is overtaken"
        driver.receive(Prompt(3, "rain", Transition.CUT, at=now + 90))
        driver.receive(Prompt(4, "noon", Transition.CUT))
        await chunks(server, 4)
        waiting = [prompts for prompts in planned(screen)[3:] if prompts]
        assert waiting == [(PlannedView(5, now + 90, "rain"),)] and planned(screen)[-1] == ()
        _, fresh = await server.join()
        assert planned(fresh) == []
        await server.stop()

    run(main())


def planned(screen: Screen) -> list[tuple[PlannedView, ...]]:
    return [message.prompts for message in screen.messages if isinstance(message, PromptsPlanned)]
