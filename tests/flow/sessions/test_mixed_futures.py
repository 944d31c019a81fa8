"""A future with a mix of its own, and a prompt that waits for its chunk: both go on in the future that is chosen."""

from pathlib import Path

import pytest
from worldroom.sessions import messages
from worldroom.sessions.journal import events
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import toy
from worldroom.tests.interleave.sessions_scene import Scene

AHEAD = 70


class Scheduled(Scene):
    """`due`: the chunk of the prompt that waits."""

    due = 0

    async def do_schedule(self) -> None:
        self.due = self.chunk + AHEAD
        night = messages.WeighedText("night", 3.0)
        self.say(messages.Prompt(self.id(), "rain", others=(night,), at=self.due, over=0))

    async def do_mixed_fork(self) -> None:
        mixed = messages.Way(prompt="a red desert", others=(messages.WeighedText("dusk"),), weight=3.0)
        self.say(messages.Fork(self.id(), (messages.Way(), mixed)))
        await self.do_wait(0.6)

    async def do_chance(self) -> None:
        self.say(messages.Choose(self.id(), messages.Keep.OTHER, 1))

    async def do_mixed(self) -> None:
        self.say(messages.Choose(self.id(), messages.Keep.OTHER, 2))

    async def do_on(self) -> None:
        await self.do_wait(4.0)


@pytest.mark.parametrize("between", ["absence", "worker", "restart", "kill"])
@pytest.mark.parametrize("chosen", ["chance", "mixed"])
def test_a_mix_and_a_schedule_go_on_in_the_future_that_is_chosen(chosen: str, between: str, tmp_path: Path) -> None:
    scene = Scheduled(toy(), 0, tmp_path)
    acts = ["schedule", "mixed_fork", chosen, between, "on"]
    script = run(scene.play(iter(acts)))
    begun = [event for event in scene.ledger.all() if isinstance(event, events.ChunkBegun)]
    playing = [event for event in begun if event.conditions.epoch == script.playing]
    weights = {event.chunk: [share.weight for share in event.conditions.prompts] for event in playing}
    before = [0.75, 0.25] if chosen == "mixed" else [1.0]
    assert len([chunk for chunk in weights if chunk < scene.due]) > 10 and max(weights) > scene.due + 10
    assert all(each == (before if chunk < scene.due else [0.25, 0.75]) for chunk, each in weights.items())
    mine = {event.conditions.prompt_version for event in playing if event.chunk < scene.due}
    later = {event.conditions.prompt_version for event in playing if event.chunk >= scene.due}
    assert len(mine) == len(later) == 1 and mine != later
    same, wrong = run(scene.replayed(script))
    assert wrong == [] and same == sum(len(epoch.chunks) for epoch in script.epochs)
