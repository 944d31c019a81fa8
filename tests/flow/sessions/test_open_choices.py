"""Two futures were shown, then the server stopped or was killed: who saw them can still choose, and once."""

from pathlib import Path

import pytest
from worldroom.sessions import messages
from worldroom.sessions.journal import events
from worldroom.sessions.journal.script import Script
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import toy
from worldroom.tests.interleave.sessions_scene import Scene

FPS = 8


class Choosing(Scene):
    """Acts that are not drawn, and what the driver was told since they came back."""

    def told_of(self, kind: type[messages.ServerMessage]) -> list[messages.ServerMessage]:
        return [message for message in self._screen.messages if isinstance(message, kind)]

    async def do_on(self) -> None:
        await self.do_wait(2.0)

    async def do_rain(self) -> None:
        self.say(messages.Prompt(self.id(), "rain"))
        await self.do_wait(1.0)

    async def do_back(self) -> None:
        self.say(messages.Rewind(self.id(), 1.5))
        await self.do_wait(1.0)

    async def do_beside(self) -> None:
        keys = self._client.cards()[0].controls[0].keys[:1]
        self.say(messages.Fork(self.id(), (messages.Way("a red desert"), messages.Way(held=keys))))
        await self.do_wait(1.0)

    async def do_this(self) -> None:
        self.say(messages.Choose(self.id(), messages.Keep.THIS))
        await self.do_wait()

    async def do_other(self) -> None:
        self.say(messages.Choose(self.id(), messages.Keep.OTHER))
        await self.do_wait()

    async def do_second(self) -> None:
        self.say(messages.Choose(self.id(), messages.Keep.THIS, 1))
        await self.do_wait()

    async def do_last(self) -> None:
        self.say(messages.Choose(self.id(), messages.Keep.THIS, 2))
        await self.do_wait()


def played(tmp_path: Path, *acts: str) -> tuple[Choosing, Script, list[events.PreferenceChosen]]:
    scene = Choosing(toy(), 0, tmp_path, FPS)
    script = run(scene.play(iter(acts)))
    assert scene.told_of(messages.Problem) == [], scene.told
    same, wrong = run(scene.replayed(script))
    assert wrong == [] and same == sum(len(epoch.chunks) for epoch in script.epochs)
    return scene, script, [event for event in scene.ledger.all() if isinstance(event, events.PreferenceChosen)]


@pytest.mark.parametrize(
    ("keep", "branch", "ends"),
    [("this", 1, "restart"), ("this", 1, "sudden"), ("other", 0, "restart"), ("other", 0, "kill")],
)
def test_one_after_the_other_is_chosen_by_the_next_server(keep: str, branch: int, ends: str, tmp_path: Path) -> None:
    scene, script, chosen = played(tmp_path, "on", "rain", "back", ends, keep, "on")
    (preference,) = chosen
    assert (preference.chosen, preference.verdict) == (branch, events.Verdict.CHOSEN)
    assert [each.branch for each in preference.branches] == [0, 1]
    stood, plays = ([each.digest for each in script.of(epoch).chunks] for epoch in (0, 1))
    assert list(preference.branches[0].digests) == stood[preference.chunk :] != []
    assert list(preference.branches[1].digests) == plays[: len(preference.branches[1].digests)] != []
    assert preference.context == stood[preference.chunk - 1] and preference.seconds >= 1.0
    seen = [message for message in scene.told_of(messages.SideBySide) if isinstance(message, messages.SideBySide)]
    assert [message.earlier for message in seen] == [True, False], "who comes back is told that there is a choice"
    last = script.of(script.playing)
    assert script.branch(last.epoch) == branch
    words = {event.conditions.prompt_version for event in begun(scene) if event.conditions.epoch == script.playing}
    assert words == {2 if branch == 0 else 1}, "the rain is of the future that it fell in"


@pytest.mark.parametrize("ends", ["restart", "kill", "worker"])
def test_side_by_side_they_are_shown_again_and_chosen(ends: str, tmp_path: Path) -> None:
    scene, script, chosen = played(tmp_path, "on", "beside", ends, "on", "last", "on")
    (preference,) = chosen
    assert (preference.chosen, preference.verdict) == (2, events.Verdict.CHOSEN)
    assert [each.branch for each in preference.branches] == [0, 1, 2]
    lengths = [len(each.digests) for each in preference.branches]
    assert min(lengths) > 2 * FPS and max(lengths) - min(lengths) <= 3, "all of them went on"
    for each, epoch in zip(preference.branches, (0, 1, 2), strict=True):
        made = [chunk.digest for chunk in script.of(epoch).chunks if chunk.chunk >= preference.chunk]
        assert list(each.digests) == made[: len(each.digests)]
    assert {each.prompt_version for each in preference.branches} == {1, 2}
    pressed = preference.branches[2].controls
    assert len(set(pressed)) == 1 and sum(pressed[0]) == 1.0, "its own key is held, also after the stop"
    if ends != "worker":
        first = scene.told_of(messages.SideBySide)[0]
        assert isinstance(first, messages.SideBySide) and first.chunk == preference.chunk
        assert [(view.prompt, len(view.held)) for view in first.places] == [("", 0), ("a red desert", 0), ("", 1)]
    assert script.playing == 2


def test_a_choice_is_open_over_several_ends_and_then_closed(tmp_path: Path) -> None:
    _, _, chosen = played(tmp_path, "on", "beside", "kill", "restart", "kill", "second", "restart", "on")
    assert [each.chosen for each in chosen] == [1]


def test_back_in_the_future_that_was_kept_is_back_in_its_own_past(tmp_path: Path) -> None:
    """Not in that of the one that was left, which has chunks of the same numbers."""
    _, script, _ = played(tmp_path, "on", "back", "on", "other", "back", "on")
    again = script.of(script.playing).turned
    assert again is not None and again.base in (0, 2)
    assert again.chunk > script.of(1).chunks[0].chunk


def begun(scene: Scene) -> list[events.ChunkBegun]:
    return [event for event in scene.ledger.all() if isinstance(event, events.ChunkBegun)]
