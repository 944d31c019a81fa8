"""A rollout makes what a session makes, and the command writes it to a film."""

from pathlib import Path

import av
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.clock import SystemClock
from worldroom.engine.rollout import Rollout
from worldroom.models.contract.loop import StepKind
from worldroom.models.toy import golden
from worldroom.models.toy.markers import read
from worldroom.tests.fake_engine import FakeDevice, steady, toy


async def test_a_rollout_is_the_golden_world() -> None:
    device = FakeDevice(steady(0.0))
    actions = [(0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0)] * 4
    made = [f async for f in Rollout(toy(), device, SystemClock(), seed=7).frames("a red desert", actions)]
    inputs = [golden.GoldenInput(held, (("a red desert", 1.0),)) for held in actions]
    expected = golden.run(7, 0, 2, 24, 1, inputs)
    assert [f"{read(frames[0]).chunk:024b}" for frames in made] == [chunk.marker_rows[0][:24] for chunk in expected]
    assert [kind for kind, _ in device.ran].count(StepKind.DENOISE) == 16


def test_the_command_writes_a_film_and_names_a_wrong_control(tmp_path: Path) -> None:
    actions, film = tmp_path / "actions", tmp_path / "x.mp4"
    actions.write_text("right\nright up\n\nleft\n")
    command = ["rollout", "toy", "--prompt", "a red desert", "--actions", str(actions), "--out", str(film)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    with av.open(str(film)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 4
    actions.write_text("right\nlefft\n")
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "line 2: no control 'lefft' (did you mean 'left'?)" in done.output
