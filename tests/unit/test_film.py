"""Films: what was written is playable, whatever happened to the writer."""

import fractions
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import av
import numpy as np
import pytest
from worldroom.film import CLOCK, Film, finish

STEP = CLOCK // 24


def encoded(count: int, width: int = 320, height: int = 192) -> list[tuple[bytes, bool]]:
    codec = av.CodecContext.create("libx264", "w")
    codec.width, codec.height, codec.pix_fmt = width, height, "yuv420p"
    codec.time_base = fractions.Fraction(1, 24)
    codec.options = {
        "preset": "ultrafast",
        "tune": "zerolatency",
        "x264-params": "annexb=1:repeat-headers=1:keyint=infinite",
    }
    out = []
    for number in range(count):
        picture = np.full((height, width, 3), number * 3 % 255, np.uint8)
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
        out += [(bytes(packet), packet.is_keyframe) for packet in codec.encode(frame)]
    return out


def shown(path: Path) -> list[float]:
    with av.open(str(path)) as film:
        return [frame.time for frame in film.decode(video=0)]


def test_a_whole_film_has_chapters_notes_and_every_frame(tmp_path: Path) -> None:
    film = Film(tmp_path / "a.mp4", 24, notes=True)
    film.chapter("one")
    for number, (data, key) in enumerate(encoded(60)):
        if number == 30:
            film.chapter("two")
        assert film.frame(1000 + number * STEP, data, key, b'{"n":%d}' % number)
    film.close()
    assert not (tmp_path / "a.mp4.part").exists()
    assert shown(tmp_path / "a.mp4") == pytest.approx([number / 24 for number in range(60)], abs=1e-3)
    with av.open(str(tmp_path / "a.mp4")) as whole:
        assert [(mark["metadata"]["title"], round(mark["start"] / 1000, 2)) for mark in whole.chapters()] == [
            ("one", 0.0),
            ("two", pytest.approx(30 / 24, abs=0.05)),
        ]
        notes = [bytes(packet) for packet in whole.demux(whole.streams.data[0]) if packet.size]
    assert notes == [b'{"n":%d}' % number for number in range(60)]


def resized(film: Film, counts: tuple[int, int, int]) -> None:
    """So many frames in full, in half size and in full again, each from a key frame on."""
    full, half, again = counts
    for number, (data, key) in enumerate([*encoded(full), *encoded(half, 160, 96), *encoded(again)]):
        assert film.frame(number * STEP, data, key)


def probed(path: Path) -> tuple[str, int]:
    """What FFmpeg says of a film: its kind, and how many frames it decodes without a complaint."""
    entries = ["-show_entries", "stream=codec_tag_string,nb_read_frames", "-of", "csv=p=0"]
    command = ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", *entries, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    kind, frames = done.stdout.strip().split(",")
    return kind, int(frames)


def test_a_film_goes_on_through_other_sizes(tmp_path: Path) -> None:
    film = Film(tmp_path / "a.mp4", 24)
    resized(film, (20, 30, 10))
    film.close()
    with av.open(str(tmp_path / "a.mp4")) as whole:
        sizes = [(frame.width, frame.height) for frame in whole.decode(video=0)]
        assert sizes == [(320, 192)] * 20 + [(160, 96)] * 30 + [(320, 192)] * 10
        whole.seek(round(30 / 24 * av.time_base))
        assert (sought := next(whole.decode(video=0))).width == 160 and sought.time == pytest.approx(20 / 24, abs=1e-3)
    assert probed(tmp_path / "a.mp4") == ("avc3", 60)
    assert len(shown(tmp_path / "a.mp4")) == 60


def test_a_film_of_one_size_is_of_the_usual_kind(tmp_path: Path) -> None:
    film = Film(tmp_path / "a.mp4", 24)
    for number, (data, key) in enumerate([*encoded(20), *encoded(20)]):
        film.frame(number * STEP, data, key)
    film.close()
    assert probed(tmp_path / "a.mp4") == ("avc1", 40)


def test_a_part_plays_through_other_sizes_and_is_made_whole(tmp_path: Path) -> None:
    film = Film(tmp_path / "a.mp4", 24, notes=True)
    resized(film, (20, 30, 10))
    film.end()
    assert probed(tmp_path / "a.mp4.part") == ("avc3", 60)
    finish(tmp_path / "a.mp4.part", tmp_path / "a.mp4")
    assert probed(tmp_path / "a.mp4") == ("avc3", 60)


def test_a_pause_is_short_and_time_never_runs_back(tmp_path: Path) -> None:
    film = Film(tmp_path / "a.mp4", 24)
    frames = encoded(6)
    for (data, key), tick in zip(
        frames, [0, STEP, STEP + 600 * CLOCK, 600 * CLOCK + 2 * STEP, 17, 17 + STEP], strict=True
    ):
        film.frame(tick & 0xFFFFFFFF, data, key)
    film.close()
    times = shown(tmp_path / "a.mp4")
    assert times == sorted(times) and len(set(times)) == 6
    assert times[2] - times[1] == pytest.approx(2.0, abs=0.01), "ten minutes of stillness are two seconds"
    assert times[-1] < 2.5


def test_a_film_begins_with_a_key_frame_and_one_without_frames_is_none(tmp_path: Path) -> None:
    old = tmp_path / "a.mp4"
    old.write_bytes(b"an older film")
    film = Film(old, 24)
    assert not film.frame(0, encoded(2)[1][0], False)
    film.close()
    assert old.read_bytes() == b"an older film" and list(tmp_path.iterdir()) == [old]


_WRITER = """
import sys, time
from pathlib import Path
from worldroom.tests.unit.test_film import encoded, STEP
from worldroom.film import Film
film = Film(Path(sys.argv[1]), 24, notes=True)
for number, (data, key) in enumerate(encoded(200)):
    film.frame(number * STEP, data, key, b"{}")
    if number == 100:
        print("far enough", flush=True)
    time.sleep(.002)
time.sleep(60)
"""


def test_case_84_a_killed_writer_leaves_its_fragments(tmp_path: Path) -> None:
    old = tmp_path / "a.mp4"
    old.write_bytes(b"an older film")
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(_WRITER), str(old)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
    part = tmp_path / "a.mp4.part"
    assert old.read_bytes() == b"an older film"
    assert len(shown(part)) >= 100 - 13, "all but the last half second"
    finish(part, old)
    assert len(shown(old)) >= 100 - 13 and not part.exists()


def test_a_full_disk_is_an_error_and_leaves_what_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film, written = Film(tmp_path / "a.mp4", 24), 0
    real = os.write

    def limited(fd: int, data: bytes) -> int:
        nonlocal written
        written += len(data)
        if written > 30_000:
            raise OSError(28, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr(os, "write", limited)
    rng = np.random.default_rng(0)
    with pytest.raises(OSError, match="No space left"):
        for number, (data, key) in enumerate(encoded(400)):
            film.frame(number * STEP, data + bytes(rng.bytes(300)), key)
    film.end()
    assert len(shown(tmp_path / "a.mp4.part")) > 10
