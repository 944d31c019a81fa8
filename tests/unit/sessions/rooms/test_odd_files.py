"""Files as phones, browsers and strangers make them: turned, without a length, swollen, torn, in wide colours."""

import io
import struct
import tracemalloc
import zlib
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from worldroom.engine.api import FirstFramesSize
from worldroom.sessions.rooms.first_frames import BadFirstFrames, UploadedMedia, read
from worldroom.tests.fake_door import CARD
from worldroom.tests.paths import ROOT

CASES = ROOT / "tests" / "cases"
UPRIGHT = FirstFramesSize(64, 96, 2)
FLAT = FirstFramesSize(96, 64, 2)
MEDIA = {
    ".mp4": UploadedMedia.MP4,
    ".jpg": UploadedMedia.JPEG,
    ".png": UploadedMedia.PNG,
    ".webp": UploadedMedia.WEBP,
    ".webm": UploadedMedia.WEBM,
}
RED, BLUE = (255, 0, 0), (0, 0, 255)


def last(path: Path, size: FirstFramesSize) -> NDArray[np.uint8]:
    return read(path.read_bytes(), MEDIA[path.suffix], CARD, size).unpack()[-1]


def refused(data: bytes, media: UploadedMedia) -> tuple[str, str]:
    with pytest.raises(BadFirstFrames) as caught:
        read(data, media, CARD, FLAT)
    return caught.value.code, str(caught.value)


def near(pixel: NDArray[np.uint8], colour: tuple[int, int, int]) -> bool:
    return bool(np.abs(pixel.astype(int) - colour).max() <= 12)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("turned90.mp4", RED, BLUE),
        ("exif6.jpg", RED, BLUE),
        ("exif6.png", RED, BLUE),
        ("exif6.webp", RED, BLUE),
    ],
)
def test_case_86_a_quarter_turn_stands_upright_with_its_size_after_the_turn(
    name: str, first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    """Stored 96 x 64 with red on the left: shown 64 x 96 with red above, as Chromium does."""
    shown = last(CASES / name, UPRIGHT)
    assert near(shown[16, 32], first) and near(shown[80, 32], second)
    assert near(shown[16, 4], first) and near(shown[16, 60], first), "nothing was cut off as if it lay"


@pytest.mark.parametrize(("name", "left", "right"), [("upright.mp4", RED, BLUE), ("exif1.jpg", RED, BLUE)])
def test_case_86_what_is_not_turned_stays(name: str, left: tuple[int, int, int], right: tuple[int, int, int]) -> None:
    shown = last(CASES / name, FLAT)
    assert near(shown[32, 20], left) and near(shown[32, 76], right)


@pytest.mark.parametrize("name", ["turned180.mp4", "exif3.jpg"])
def test_case_86_half_a_turn_puts_blue_on_the_left(name: str) -> None:
    shown = last(CASES / name, FLAT)
    assert near(shown[32, 20], BLUE) and near(shown[32, 76], RED)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_case_86_all_eight_orientations_are_those_of_a_reader_nobody_here_wrote(orientation: int) -> None:
    quarters = np.zeros((64, 96, 3), np.uint8)
    quarters[:32, :48], quarters[:32, 48:], quarters[32:, :48], quarters[32:, 48:] = RED, BLUE, (0, 255, 0), (9, 9, 9)
    exif = Image.Exif()
    exif[0x0112] = orientation
    held = io.BytesIO()
    Image.fromarray(quarters).save(held, "PNG", exif=exif)
    from PIL import ImageOps

    wanted = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(held.getvalue()))).convert("RGB"))
    size = FirstFramesSize(wanted.shape[1], wanted.shape[0], 2)
    assert np.array_equal(read(held.getvalue(), UploadedMedia.PNG, CARD, size).unpack()[0], wanted)


def film(seconds: int, container: str, codec: str, options: dict[str, str], gop: int = 48) -> bytes:
    """Grey level 40 + number of the frame mod 160, 24 a second."""
    held = io.BytesIO()
    with av.open(held, "w", format=container, options=options) as file:
        stream = file.add_stream(codec, rate=24)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        stream.codec_context.gop_size = gop
        for number in range(seconds * 24):
            grey = np.full((64, 96, 3), 40 + number % 160, np.uint8)
            frame = av.VideoFrame.from_ndarray(grey, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 24)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return held.getvalue()


@pytest.mark.parametrize(
    ("media", "container", "codec", "options", "gop"),
    [
        (UploadedMedia.WEBM, "webm", "libvpx", {"live": "1"}, 48),
        (UploadedMedia.MP4, "mp4", "libx264", {"movflags": "frag_keyframe+empty_moov"}, 48),
        (UploadedMedia.MP4, "mp4", "libx264", {}, 48),
        (UploadedMedia.MP4, "mp4", "libx264", {}, 100_000),
    ],
    ids=["a browser's recording", "fragments", "plain", "one key frame, as ours"],
)
def test_case_87_a_minute_of_film_gives_its_last_frames_whatever_it_says_of_its_length(
    media: UploadedMedia, container: str, codec: str, options: dict[str, str], gop: int
) -> None:
    data = film(60, container, codec, options, gop)
    levels = read(data, media, CARD, FLAT).unpack()[:, 32, 48, 0].astype(int)
    end = 40 + (60 * 24 - 1) % 160
    assert np.abs(levels - [end - 1, end]).max() <= 4


def png(extra: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = b"\0" + bytes([0, 160, 0] * 64)
    head, body = chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)), chunk(b"IDAT", zlib.compress(row * 64))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"zTXt", extra) + body + chunk(b"IEND", b"")


@pytest.mark.parametrize("name", ["ztxt.png", "iccp.png"])
def test_case_81_a_small_picture_with_text_that_swells_costs_no_memory(name: str) -> None:
    data = (CASES / name).read_bytes()
    tracemalloc.start()
    try:
        assert near(read(data, UploadedMedia.PNG, CARD, FLAT).unpack()[0, 32, 48], (0, 160, 0))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_case_81_the_decoder_never_sees_the_text() -> None:
    from worldroom.sessions.rooms.picture_files import bare_png

    bomb = png(b"Comment\0\0" + zlib.compress(bytes(8 << 20), 9))
    bare, orientation = bare_png(bomb)
    assert b"zTXt" not in bare and orientation == 1 and len(bare) < 400


@pytest.mark.parametrize("name", ["2020-10.mp4", "hlg-10.mp4", "pq-10.mp4"])
def test_case_96_colours_that_would_come_out_wrong_are_refused_with_their_name(name: str) -> None:
    code, detail = refused((CASES / name).read_bytes(), UploadedMedia.MP4)
    assert code == "colours"
    assert {"2020": "BT.2020", "hlg-": "HLG (HDR)", "pq-1": "PQ (HDR10)"}[name[:4]] in detail


def test_case_100_the_reason_is_the_true_one() -> None:
    assert refused((CASES / "anim.webp").read_bytes(), UploadedMedia.WEBP) == (
        "animated",
        "this WebP is animated: send one picture of it",
    )
    assert refused((CASES / "trunc.png").read_bytes(), UploadedMedia.PNG)[0] == "torn"
    photo = (CASES / "exif1.jpg").read_bytes()
    assert refused(photo[: len(photo) // 2], UploadedMedia.JPEG)[0] == "torn"
    still = (CASES / "exif6.webp").read_bytes()
    assert refused(still[:-20], UploadedMedia.WEBP)[0] == "torn"
