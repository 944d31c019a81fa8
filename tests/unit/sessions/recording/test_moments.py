"""The last half minute of a world is a film whenever somebody asks, whatever the stream's key frames are."""

import io
from fractions import Fraction

import av
import numpy as np
from worldroom.engine.api import Frame, Timings
from worldroom.sessions.recording.moments import BYTES_MAX, Moments

FPS = 10
TICK = 90_000 // FPS


def stream(seconds: int, key_every: int, size: int = 0) -> list[Frame]:
    """Grey frames, level = number mod 200; the stream's times wrap around on the way."""
    codec = av.CodecContext.create("libx264", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = 64, 48, "yuv420p", Fraction(1, FPS)
    codec.options = {
        "tune": "zerolatency",
        "preset": "ultrafast",
        "x264-params": f"keyint={key_every}:repeat-headers=1",
    }
    frames = []
    for number in range(seconds * FPS):
        grey = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 20 + number % 200, np.uint8), format="rgb24")
        grey.pts = number
        for packet in codec.encode(grey):
            pts = (2**32 - 5 * TICK + number * TICK) & 0xFFFFFFFF
            data = bytes(packet) + bytes(size)
            frames.append(
                Frame("a", number, number, 0, pts, packet.is_keyframe, data, 0, 0, (), 0.0, Timings(0, 0, 0, 0))
            )
    return frames


def levels(film: bytes) -> list[int]:
    with av.open(io.BytesIO(film)) as file:
        return [round(float(frame.to_ndarray(format="gray8").mean())) for frame in file.decode(video=0)]


def test_a_film_begins_with_the_last_key_frame_before_its_time_and_ends_now() -> None:
    moments = Moments(FPS, lambda: None)
    for frame in stream(60, key_every=100):
        moments.frame(frame, 0)
    shown = levels(moments.film(moments.taken()))
    assert 300 <= len(shown) <= 400
    assert abs(shown[-1] - (20 + 599 % 200)) <= 4


def test_what_no_film_will_hold_is_forgotten_by_time_and_by_bytes() -> None:
    moments = Moments(FPS, lambda: None)
    for frame in stream(90, key_every=50):
        moments.frame(frame, 0)
    assert len(moments) <= 47 * FPS
    heavy = Moments(FPS, lambda: None)
    for frame in stream(20, key_every=50, size=1 << 20):
        heavy.frame(frame, 0)
    assert len(heavy) <= BYTES_MAX >> 20


def test_a_stream_without_key_frames_is_asked_for_one_now_and_then() -> None:
    asked: list[int] = []
    moments = Moments(FPS, lambda: asked.append(len(moments)))
    for frame in stream(60, key_every=100_000):
        moments.frame(frame, 0)
    assert len(asked) == 3


def test_before_the_first_key_frame_there_is_no_film() -> None:
    moments = Moments(FPS, lambda: None)
    assert moments.taken() == ()
    for frame in stream(2, key_every=100)[1:]:
        moments.frame(frame, 0)
    assert moments.taken() == ()
