"""A rollout makes what a session makes, and the command writes it to a film."""

import asyncio
import json
import signal
import subprocess
import time
from pathlib import Path

import av
import pytest
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.cli.movie import MadeFilm, Plan, write_movie
from worldroom.cli.rollout import chunks_of
from worldroom.clients.bench.server import command as server_command
from worldroom.clock import LoopClock, SystemClock
from worldroom.engine.device.batch import Batch
from worldroom.engine.rollout import Rollout
from worldroom.models.contract.card import FrameSpec
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.placement import Placement
from worldroom.models.toy import golden
from worldroom.models.toy.markers import read
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, steady, toy


async def test_a_rollout_is_the_golden_world() -> None:
    device = FakeDevice(steady(0.0))
    actions = [(0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0)] * 4
    made = [f async for f in Rollout(toy(), device, SystemClock(), seed=7).frames("a red desert", actions)]
    inputs = [golden.GoldenInput(held, (("a red desert", 1.0),)) for held in actions]
    expected = golden.run(7, 0, 2, 24, 1, inputs)
    assert [f"{read(frames[0]).chunk:024b}" for frames in made] == [chunk.marker_rows[0][:24] for chunk in expected]
    assert [kind for kind, _ in device.ran].count(StepKind.DENOISE) == 16


def test_where_pictures_are_made_beside_the_device_the_next_chunk_does_not_wait_for_them() -> None:
    async def scene(where: Placement) -> tuple[list[bytes], float]:
        device, clock = FakeDevice(lambda batch: 0.010), LoopClock(asyncio.get_running_loop())
        actions = [(0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0)] * 10
        rollout = Rollout(toy(decode=where), device, clock, seed=7, steps=1)
        made = [frames.tobytes() async for frames in rollout.frames("a red desert", actions)]
        return made, clock.now()

    frames, seconds = run(scene(Placement.DEVICE))
    sooner, fewer = run(scene(Placement.AUX))
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
        rollout = Rollout(toy(decode=Placement.AUX), device, clock, seed=7, steps=1)
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


def command(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["rollout", *words])
    return done.exit_code, done.output


def frames_in(film: Path) -> int:
    with av.open(str(film)) as container:
        return sum(1 for _ in container.decode(video=0))


def test_a_card_alone_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = command("toy", "--json")
    report = json.loads(out)
    assert code == 0 and (report["card"], report["path"], report["frames"]) == ("toy", "toy.mp4", 120)
    assert report["fps"] == pytest.approx(120 / report["seconds"]) and not report["stopped"]
    assert frames_in(tmp_path / "toy.mp4") == 120, "five seconds at 24 a second"
    assert [path.name for path in tmp_path.iterdir()] == ["toy.mp4"]


def test_what_is_held_all_along_is_what_a_file_of_it_says(tmp_path: Path) -> None:
    held, filed, lines = tmp_path / "held.mp4", tmp_path / "filed.mp4", tmp_path / "lines"
    lines.write_text("right up\n" * 10)
    code, out = command("toy", "--frames", "10", "--hold", "right up", "--out", str(held))
    assert code == 0 and "held.mp4: 10 frames at 24 fps, made in" in " ".join(out.split())
    assert command("toy", "--prompt", "a calm blue sea", "--actions", str(lines), "--out", str(filed))[0] == 0
    assert held.read_bytes() == filed.read_bytes(), "the first suggestion is the default"


def test_options_that_do_not_go_together_are_one_line(tmp_path: Path) -> None:
    code, out = command("toy", "--hold", "gas")
    assert code == 2 and "--hold: no control 'gas'" in out
    code, out = command("toy", "--actions", "some", "--frames", "3")
    assert code == 2 and "give it, or --frames and --hold" in " ".join(out.split())
    code, out = command("toy", "--frames", "3", "--out", str(tmp_path / "none" / "x.mp4"))
    assert code == 2 and "cannot write" in out and "No such file or directory" in " ".join(out.split())
    code, out = command("toy", "--frames", "3", "--out", str(tmp_path))
    assert code == 2 and "it is a folder; name the film" in " ".join(out.split())


def test_frames_become_whole_chunks_and_a_film_of_that_length() -> None:
    spec = FrameSpec(64, 48, 1, 16, per_chunk=12, opening=9)
    assert [chunks_of(frames, spec) for frames in (1, 9, 10, 21, 22)] == [1, 1, 2, 2, 3]


def test_who_stops_a_rollout_keeps_a_whole_film_of_what_was_made(tmp_path: Path) -> None:
    async def scene(stop_at: int, out: Path) -> MadeFilm:
        device, clock = FakeDevice(lambda batch: 0.010), LoopClock(asyncio.get_running_loop())
        made = 0

        def written() -> None:
            nonlocal made
            made += 1
            if made == stop_at:
                task.cancel()

        plan = Plan("a red desert", [(0.0, 0.0, 0.0, 0.0)] * 40, 40, seed=7, steps=1)
        task = asyncio.create_task(write_movie(toy(), plan, out, device, clock, written))
        if stop_at == 0:
            await asyncio.sleep(0.001)
            task.cancel()
        return await task

    film = run(scene(12, tmp_path / "some.mp4"))
    assert film.stopped and film.frames == 12 == frames_in(tmp_path / "some.mp4")
    none = run(scene(0, tmp_path / "none.mp4"))
    assert none.stopped and none.frames == 0
    assert [path.name for path in tmp_path.iterdir()] == ["some.mp4"], "no half file"


def test_a_fault_leaves_the_film_of_before_alone(tmp_path: Path) -> None:
    async def scene(out: Path) -> None:
        device, clock = FakeDevice(lambda batch: 0.010), LoopClock(asyncio.get_running_loop())

        def fails(batch: Batch) -> None:
            if len(device.ran) > 20:
                raise FloatingPointError("not finite")

        device.fail = fails
        plan = Plan("a red desert", [(0.0, 0.0, 0.0, 0.0)] * 40, 40, seed=7, steps=1)
        await write_movie(toy(), plan, out, device, clock, lambda: None)

    film = tmp_path / "x.mp4"
    film.write_bytes(b"of before")
    with pytest.raises(FloatingPointError):
        run(scene(film))
    assert film.read_bytes() == b"of before" and [path.name for path in tmp_path.iterdir()] == ["x.mp4"]


def test_ctrl_c_says_what_was_kept(tmp_path: Path) -> None:
    """With its real process: the signal comes when the first frames are on the disk."""
    out = tmp_path / "x.mp4"
    words = [server_command(), "rollout", "toy", "--frames", "1000000", "--out", str(out)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    part = tmp_path / "x.mp4.part"
    for _ in range(600):
        if part.exists() and part.stat().st_size > 1000:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.startswith(f"stopped: {out}: {frames_in(out)} frames at 24 fps")
    assert [path.name for path in tmp_path.iterdir()] == ["x.mp4"]


def test_a_prompt_that_is_too_long_is_said_in_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["rollout", "drive", "--prompt", "x" * 401, "--out", str(tmp_path / "x.mp4")])
    assert done.exit_code == 2
    assert done.output.strip().endswith("a prompt may have 400 characters, this one has 401")
    assert not [*tmp_path.iterdir()]
