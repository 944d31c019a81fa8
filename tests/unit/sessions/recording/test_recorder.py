"""Recordings: frames as they went out, with notes beside them; a bad disk ends a film and never a frame."""

import asyncio
import json
import shutil
import threading
from pathlib import Path

import av
import pytest
from worldroom.clock import SystemClock
from worldroom.engine.api import Frame, Timings
from worldroom.film import CLOCK, Film
from worldroom.sessions.audience import Audience, FrameInput, FrameInputs
from worldroom.sessions.recording import recorder as recorder_module
from worldroom.sessions.recording.recorder import SessionRecorder
from worldroom.sessions.recording.recordings import Recordings
from worldroom.sessions.recording.summary import RecordingInfo, notes_of
from worldroom.tests.unit.test_film import encoded, probed

STEP = CLOCK // 24
INFO = RecordingInfo("1", "s", "lobby", "toy", 1.0, 24)


def frame(number: int, data: bytes, key: bool, epoch: int = 0, prompt: int = 1, pressed: bool = False) -> Frame:
    return Frame(
        session="s",
        frame=number,
        chunk=number,
        epoch=epoch,
        pts=500_000 + number * STEP,
        key=key,
        data=data,
        input_seq=number,
        prompt_version=prompt,
        controls=(float(pressed), 0.0),
        begun=0.0,
        timings=Timings(1, 2, 3, 4),
    )


NOTHING = FrameInputs(FrameInput(0, 0, ()))


async def test_a_film_its_notes_chapters_and_pictures(tmp_path: Path) -> None:
    recordings, audience, asked = Recordings(tmp_path, SystemClock()), Audience(lambda *_: None), []
    assert recordings.start(audience, "s", "lobby", "toy", 24, lambda: asked.append(1)) == "1"
    assert recordings.start(audience, "s", "lobby", "toy", 24, lambda: None) == "1", "it runs already"
    for number, (data, key) in enumerate(encoded(72)):
        audience.show(
            frame(number, data, key, prompt=1 + number // 36, pressed=24 <= number < 36),
            FrameInputs(FrameInput(0, 7, ())),
        )
    assert recordings.stop("s") and not recordings.stop("s")
    await recordings.close()
    assert asked == [1], "a key frame to begin with"
    (info,) = recordings.of("s")
    assert (info.frames, info.width, info.height, info.dropped, info.cut_short) == (72, 320, 192, 0, "")
    assert info.ticks == 72 * STEP
    assert [(c.chunk, c.prompt_version) for c in info.chapters] == [(0, 1), (36, 2)]
    assert info.activity == (0, 0, 1, 0, 0, 0)
    film = recordings.path("s", "1", ".mp4")
    assert film is not None
    assert [(note.frame, note.at, note.hold_us) for note in notes_of(film)] == [(n, n * STEP, 7) for n in range(72)]
    with av.open(str(film)) as opened:
        assert len(opened.chapters()) == 2
        assert sum(1 for _ in opened.decode(video=0)) == 72
    with av.open(str(film)) as opened:
        assert json.loads(next(bytes(p) for p in opened.demux(opened.streams.data[0])))["frame"] == 0
    for suffix in (".jpg", "-sheet.jpg"):
        with av.open(str(recordings.path("s", "1", suffix))) as picture:
            assert next(picture.decode(video=0)).width >= 160
    assert recordings.path("s", "1", "/../../x") is None and recordings.path("..", "1", ".mp4") is None
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "s").iterdir() if path.suffix != ".mp4")
    assert recordings.delete("s") > 0 and not (tmp_path / "s").exists()


async def test_a_recording_goes_on_through_other_sizes(tmp_path: Path) -> None:
    recordings, audience = Recordings(tmp_path, SystemClock()), Audience(lambda *_: None)
    recordings.start(audience, "s", "lobby", "toy", 24, lambda: None)
    for number, (data, key) in enumerate([*encoded(30), *encoded(24, 160, 96), *encoded(12, 640, 384)]):
        audience.show(frame(number, data, key), NOTHING)
    recordings.stop("s")
    await recordings.close()
    (info,) = recordings.of("s")
    assert (info.frames, info.width, info.height, info.resized, info.cut_short) == (66, 320, 192, True, "")
    film = recordings.path("s", "1", ".mp4")
    assert film is not None and probed(film) == ("avc3", 66)
    assert [note.frame for note in notes_of(film)] == [*range(66)]
    with av.open(str(recordings.path("s", "1", "-sheet.jpg"))) as sheet:
        assert next(sheet.decode(video=0)).width == 4 * 160, "small pictures of one size"


async def test_the_second_film_begins_anew_also_beside_pictures_of_the_first(tmp_path: Path) -> None:
    recordings, audience = Recordings(tmp_path, SystemClock()), Audience(lambda *_: None)
    frames = encoded(30)
    for name in ("1", "2"):
        assert recordings.start(audience, "s", "lobby", "toy", 24, lambda: None) == name
        for number, (data, key) in enumerate(frames):
            audience.show(frame(number, data, key), NOTHING)
        recordings.stop("s")
        await recordings.close()
        assert recordings.path("s", name, "-sheet.jpg") is not None
    assert [info.frames for info in recordings.of("s")] == [30, 30]


def test_a_full_disk_ends_the_film_and_not_the_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Film.frame

    def full(film: Film, *words: object) -> bool:
        if film.frames >= 20:
            raise OSError(28, "No space left on device")
        return real(film, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(Film, "frame", full)
    recorder = SessionRecorder(tmp_path / "1.mp4", INFO, lambda: None)
    for number, (data, key) in enumerate(encoded(60)):
        recorder.frame(frame(number, data, key), 0)
    recorder.stop()
    assert recorder.wait(10)
    assert recorder.failed is not None and "No space left" in recorder.failed
    info = json.loads((tmp_path / "1.json").read_bytes())
    assert info["frames"] == 20 and "No space left" in info["cut_short"]


def test_a_slow_disk_costs_frames_up_to_the_next_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, real, asked = threading.Event(), Film.frame, []

    def slow(film: Film, *words: object) -> bool:
        gate.wait(10)
        return real(film, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(Film, "frame", slow)
    frames = encoded(40)
    monkeypatch.setattr(recorder_module, "QUEUED_BYTES_MAX", sum(len(data) for data, _ in frames[:20]))
    recorder = SessionRecorder(tmp_path / "1.mp4", INFO, lambda: asked.append(1))
    for number, (data, key) in enumerate(frames):
        recorder.frame(frame(number, data, key), 0)
    assert recorder.dropped > 0 and asked == [1, 1], "a key frame is asked for once"
    gate.set()
    threading.Event().wait(0.5)
    for number, (data, key) in enumerate(frames[:20]):
        recorder.frame(frame(40 + number, data, key), 0)
    recorder.stop()
    assert recorder.wait(10)
    written = [note.frame for note in notes_of(tmp_path / "1.mp4")]
    assert written[0] == 0 and written[-1] >= 40 and written == sorted(written)


def test_what_a_killed_server_left_is_made_whole_at_the_next_start(tmp_path: Path) -> None:
    recordings, audience = Recordings(tmp_path / "a", SystemClock()), Audience(lambda *_: None)
    recordings.start(audience, "s", "lobby", "toy", 24, lambda: None)
    for number, (data, key) in enumerate(encoded(72)):
        audience.show(frame(number, data, key), NOTHING)
    deadline = threading.Event()
    for _ in range(500):
        part = tmp_path / "a" / "s" / "1.mp4.part"
        if part.stat().st_size > 20_000:
            break
        deadline.wait(0.01)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    asyncio.run(recordings.close())
    again = Recordings(tmp_path / "b", SystemClock())
    assert again.salvaged() == 1 and again.salvaged() == 0
    (info,) = again.of("s")
    assert info.frames >= 24 and info.cut_short == "the server was killed"
    film = again.path("s", "1", ".mp4")
    assert film is not None
    with av.open(str(film)) as opened:
        times = [round(shown.time * CLOCK) for shown in opened.decode(video=0)]
    assert [note.at for note in notes_of(film)] == times and len(times) == info.frames, "notes end with the film"


@pytest.mark.parametrize("count", [0, 1, 5])
def test_what_was_killed_before_its_first_fragment_leaves_nothing_and_stops_nobody(tmp_path: Path, count: int) -> None:
    recordings, audience = Recordings(tmp_path / "a", SystemClock()), Audience(lambda *_: None)
    recordings.start(audience, "s", "lobby", "toy", 24, lambda: None)
    for number, (data, key) in enumerate(encoded(count)):
        audience.show(frame(number, data, key), NOTHING)
    threading.Event().wait(0.3)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    asyncio.run(recordings.close())
    again = Recordings(tmp_path / "b", SystemClock())
    assert again.salvaged() == 0
    assert [*(tmp_path / "b" / "s").iterdir()] == [] and again.of("s") == []
