"""A rollout makes what a session makes, and the command writes it to a film."""

import asyncio
from pathlib import Path

import av
import pytest
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.clock import LoopClock, SystemClock
from worldroom.engine.device.worker import Batch
from worldroom.engine.rollout import Rollout
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.program import Where
from worldroom.models.toy import golden
from worldroom.models.toy.markers import read
from worldroom.tests.fake_engine import FakeDevice, steady, toy
from worldroom.tests.virtual_time import run


async def test_a_rollout_is_the_golden_world() -> None:
    device = FakeDevice(steady(0.0))
    actions = [(0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0)] * 4
    made = [f async for f in Rollout(toy(), device, SystemClock(), seed=7).frames("a red desert", actions)]
    inputs = [golden.GoldenInput(held, (("a red desert", 1.0),)) for held in actions]
    expected = golden.run(7, 0, 2, 24, 1, inputs)
    assert [f"{read(frames[0]).chunk:024b}" for frames in made] == [chunk.marker_rows[0][:24] for chunk in expected]
    assert [kind for kind, _ in device.ran].count(StepKind.DENOISE) == 16


def test_where_pictures_are_made_beside_the_device_the_next_chunk_does_not_wait_for_them() -> None:
    async def scene(where: Where) -> tuple[list[bytes], float]:
        device, clock = FakeDevice(lambda batch: 0.010), LoopClock(asyncio.get_running_loop())
        actions = [(0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0)] * 10
        rollout = Rollout(toy(decode=where), device, clock, seed=7, steps=1)
        made = [frames.tobytes() async for frames in rollout.frames("a red desert", actions)]
        return made, clock.now()

    frames, seconds = run(scene(Where.DEVICE))
    sooner, fewer = run(scene(Where.BESIDE))
    assert sooner == frames and len(frames) == 20
    assert seconds == pytest.approx(0.61)  # the prompt, then 20 times a step, a commit and a decode
    assert fewer == pytest.approx(0.42)


def test_a_rollout_whose_pictures_fail_says_so_and_leaves_nothing_behind() -> None:
    async def scene() -> None:
        device, clock = FakeDevice(lambda batch: 0.010), LoopClock(asyncio.get_running_loop())

        def fails(batch: Batch) -> None:
            if batch.kind is StepKind.DECODE and len(device.ran) > 20:
                raise FloatingPointError("not finite")

        device.fail = fails
        rollout = Rollout(toy(decode=Where.BESIDE), device, clock, seed=7, steps=1)
        made = 0
        with pytest.raises(FloatingPointError):
            async for _ in rollout.frames("a red desert", [(0.0, 0.0, 0.0, 0.0)] * 20):
                made += 1
        assert made > 3
        await asyncio.sleep(1)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(scene())


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
