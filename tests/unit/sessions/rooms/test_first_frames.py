"""Uploaded files and the frames a world starts from: sizes, times, and everything that is refused."""

import io
import struct
import zlib
from fractions import Fraction

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from worldroom.engine.api import FirstFrames, FirstFramesSize
from worldroom.sessions.rooms.first_frames import PICTURE_BYTES_MAX, BadFirstFrames, UploadedMedia, read
from worldroom.tests.fake_door import CARD
from worldroom.tests.files import picture, video

SIZE = FirstFramesSize(64, 48, 9)


def frames(data: bytes, media: UploadedMedia) -> NDArray[np.uint8]:
    return read(data, media, CARD, SIZE).unpack()


def refused(data: bytes, media: UploadedMedia) -> str:
    with pytest.raises(BadFirstFrames) as caught:
        read(data, media, CARD, SIZE)
    return caught.value.code


def halves(height: int, width: int) -> NDArray[np.uint8]:
    """Black left, white right."""
    rgb_HWC = np.zeros((height, width, 3), np.uint8)
    rgb_HWC[:, width // 2 :] = 255
    return rgb_HWC


@pytest.mark.parametrize("media", [UploadedMedia.PNG, UploadedMedia.JPEG, UploadedMedia.WEBP])
def test_a_picture_is_cut_evenly_and_scaled_to_the_cards_size(media: UploadedMedia) -> None:
    made = frames(picture(media, halves(200, 300)), media)
    assert made.shape == (1, 48, 64, 3)
    assert made[0, :, :28].max() < 8 and made[0, :, 36:].min() > 247


def test_what_stands_over_is_cut_off() -> None:
    rgb_HWC = np.full((100, 400, 3), 255, np.uint8)
    rgb_HWC[:, 140:260] = 7  # the middle 133 columns cover 4:3 at 100 rows
    assert np.unique(frames(picture(UploadedMedia.PNG, rgb_HWC), UploadedMedia.PNG)[0, :, 6:58]).tolist() == [7]


@pytest.mark.parametrize("media", [UploadedMedia.MP4, UploadedMedia.WEBM])
def test_a_video_gives_its_last_frames_at_the_cards_rate(media: UploadedMedia) -> None:
    """50 frames a second, each two levels brighter than the one before; the card plays 25."""
    levels = frames(video(media, [4 * n for n in range(60)], fps=50), media)[:, 24, 32, 0].astype(int)
    assert len(levels) == 9
    assert np.abs(levels - [236 - 8 * n for n in range(8, -1, -1)]).max() <= 3


def test_a_long_video_is_read_from_near_its_end_only() -> None:
    levels = frames(video(UploadedMedia.MP4, [n % 200 for n in range(2600)], fps=25), UploadedMedia.MP4)[
        :, 24, 32, 0
    ].astype(int)
    assert np.abs(levels - np.arange(191, 200)).max() <= 4


def test_a_slow_video_shows_frames_several_times() -> None:
    levels = frames(video(UploadedMedia.MP4, [40, 80, 120, 160, 200], fps=5), UploadedMedia.MP4)[:, 24, 32, 0].astype(
        int
    )
    assert np.abs(levels - [120, 120, 120, 160, 160, 160, 160, 160, 200]).max() <= 6


def test_a_short_video_is_refused() -> None:
    assert refused(video(UploadedMedia.MP4, [10] * 8, fps=25), UploadedMedia.MP4) == "length"


def test_bytes_that_are_not_what_they_say_are_refused() -> None:
    png = picture(UploadedMedia.PNG, halves(200, 300))
    assert refused(png, UploadedMedia.JPEG) == "not_that_format"
    assert refused(b"hello", UploadedMedia.MP4) == "not_that_format"
    assert refused(b"", UploadedMedia.WEBP) == "not_that_format"
    noise = np.random.default_rng(0).integers(0, 256, (200, 300, 3)).astype(np.uint8)
    assert refused(picture(UploadedMedia.PNG, noise)[:60_000], UploadedMedia.PNG) == "torn"
    assert refused(png[:8] + bytes(500), UploadedMedia.PNG) in ("unreadable", "pixels", "torn")
    assert refused(video(UploadedMedia.MP4, [10] * 60, fps=25)[:400], UploadedMedia.MP4) == "unreadable"
    assert refused(png + bytes(PICTURE_BYTES_MAX), UploadedMedia.PNG) == "too_large"


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    def part(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = part(b"IHDR", struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + head + part(b"IDAT", zlib.compress(bytes(1000))) + part(b"IEND", b"")
    assert refused(bomb, UploadedMedia.PNG) == "pixels"


def test_an_opening_keeps_every_bit_and_refuses_other_bytes() -> None:
    rgb_FHWC = np.random.default_rng(1).integers(0, 256, (2, 48, 64, 3)).astype(np.uint8)
    opening = FirstFrames.of(rgb_FHWC)
    assert np.array_equal(opening.unpack(), rgb_FHWC)
    for packed in (zlib.compress(bytes(10)), zlib.compress(bytes(100_000)), b"nothing", opening.packed[:-4]):
        with pytest.raises(ValueError, match="unpack"):
            FirstFrames(2, 48, 64, packed).unpack()


def test_a_sound_file_is_no_video() -> None:
    held = io.BytesIO()
    with av.open(held, "w", format="mp4") as file:
        stream = file.add_stream("aac", rate=48_000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.sample_rate, sound.pts, sound.time_base = 48_000, 0, Fraction(1, 48_000)
        for packet in [*stream.encode(sound), *stream.encode(None)]:
            file.mux(packet)
    assert refused(held.getvalue(), UploadedMedia.MP4) == "unreadable"


def test_case_109_a_film_with_a_title_in_another_alphabet_is_read() -> None:
    film = titled("Xabcdefg")
    assert b"Xabcdefg" in film
    assert frames(film.replace(b"Xabcdefg", b"X\xe4\xf6\xfc\xdf\xe9\xff\xfe"), UploadedMedia.MP4).shape[0] == 9


def test_case_109_a_film_of_an_unknown_codec_is_refused_with_the_reason() -> None:
    film = titled("t").replace(b"avc1", b"zzzz")
    with pytest.raises(BadFirstFrames, match="codec") as refusal:
        read(film, UploadedMedia.MP4, CARD, SIZE)
    assert refusal.value.code == "unreadable"


def titled(title: str) -> bytes:
    """A second of film with that title."""
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as file:
        file.metadata["title"] = title
        stream = file.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(25):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), number, np.uint8), format="rgb24")
            frame.pts = number
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return out.getvalue()
