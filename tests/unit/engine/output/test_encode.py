"""One encoder per session: key frames only when asked, parameter sets with each, bytes bounded, bits as negotiated."""

from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from worldroom.engine.output.encode import EncodedFrame, H264Encoder, KeyGate
from worldroom.film import Film
from worldroom.kernels.frames_to_yuv import frames_to_yuv
from worldroom.models.contract.card import FrameSpec, Pixels

FRAME = FrameSpec(width=64, height=48, scale=4, fps=24, per_chunk=1)


def picture(number: int) -> np.ndarray:
    """A textured scene that pans, with noise that no encoder likes."""
    noise = np.random.default_rng(number).integers(0, 24, (48, 64, 3))
    y, x = np.mgrid[0:48, 0:64]
    scene = ((x + 3 * number) * 7 % 160 + y * 2 % 70)[..., None] + noise
    return scene.astype(np.uint8)


def encode(encoder: H264Encoder, count: int, keys: tuple[int, ...] = (), start: int = 0) -> list[EncodedFrame]:
    return [encoder.encode(picture(n), n * 3750, n in keys) for n in range(start, start + count)]


def unit_types(data: bytes) -> list[int]:
    starts = [i + 3 for i in range(len(data) - 3) if data[i : i + 3] == b"\x00\x00\x01"]
    return [data[i] & 31 for i in starts]


def test_one_request_is_one_key_frame_in_a_hundred() -> None:
    made = encode(H264Encoder(FRAME, 1000, 6000), 100, keys=(40,))
    assert [n for n, encoded in enumerate(made) if encoded.key] == [0, 40]
    assert [n for n, encoded in enumerate(made) if 5 in unit_types(encoded.data)] == [0, 40]


def test_parameter_sets_precede_every_key_frame() -> None:
    made = encode(H264Encoder(FRAME, 1000, 6000), 30, keys=(7, 20))
    for number in (0, 7, 20):
        types = unit_types(made[number].data)
        assert types.index(7) < types.index(8) < types.index(5)


def test_profile_and_level_are_what_the_edge_negotiates() -> None:
    for encoded in encode(H264Encoder(FRAME, 1000, 6000), 10, keys=(5,)):
        if encoded.key:
            at = encoded.data.index(b"\x00\x00\x01\x67") + 4
            assert encoded.data[at : at + 3].hex() == "42e01f"


def test_no_frame_is_larger_than_the_bound() -> None:
    encoder = H264Encoder(FRAME, 1000, 2000)
    made = encode(encoder, 60, keys=(20, 40))
    assert encoder.frame_bytes_max == 15_625
    assert max(len(encoded.data) for encoded in made) <= encoder.frame_bytes_max


def test_another_bitrate_is_followed_without_a_key_frame() -> None:
    encoder = H264Encoder(FRAME, 1500, 6000)
    before = encode(encoder, 60)
    encoder.set_bitrate(400)
    after = encode(encoder, 96, start=60)
    assert not any(encoded.key for encoded in after)
    rate = [sum(len(encoded.data) for encoded in part) / len(part) for part in (before[24:], after[48:])]
    assert rate[1] < 0.5 * rate[0]
    encoder.set_bitrate(1500)
    again = encode(encoder, 96, start=156)
    assert sum(len(encoded.data) for encoded in again[48:]) / 48 > 0.8 * rate[0]


@pytest.mark.parametrize("smooth", [False, True])
def test_what_comes_out_is_the_picture_enlarged(smooth: bool) -> None:
    frame = FrameSpec(width=64, height=48, scale=4, fps=24, per_chunk=1, smooth=smooth)
    rgb = np.zeros((48, 64, 3), np.uint8)
    rgb[:, 32:] = 255
    encoded = H264Encoder(frame, 2000, 6000).encode(rgb, 0, False)
    decoder = av.CodecContext.create("h264", "r")
    (shown,) = [*decoder.decode(av.Packet(encoded.data)), *decoder.decode(None)]
    grey = shown.to_ndarray(format="gray")
    assert grey.shape == (192, 256)
    assert grey[:, :120].max() < 40
    assert grey[:, 136:].min() > 215
    between = ((grey[96] > 60) & (grey[96] < 200)).sum()
    assert bool(between) is smooth


COLOURS = {
    "red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "grey": (128, 128, 128), "skin": (224, 172, 138),
}  # fmt: skip


def gentle() -> np.ndarray:
    """48 x 64 without an edge: what two ways to enlarge and to halve colour agree on."""
    y, x = np.mgrid[0:48, 0:64]
    return np.stack([3 * x + 20, 4 * y + 20, 200 - x - 2 * y], -1).astype(np.uint8)


def planes(rgb_HWC: np.ndarray, frame: FrameSpec) -> np.ndarray:
    """I420 as a card on a GPU makes it."""
    i420 = replace(frame, pixels=Pixels.I420)
    return (
        frames_to_yuv(torch.from_numpy(rgb_HWC).permute(2, 0, 1)[None], scale=i420.scale, smooth=i420.smooth)
        .view(i420.each)
        .numpy()
    )


def decoded(encoded: EncodedFrame) -> av.VideoFrame:
    decoder = av.CodecContext.create("h264", "r")
    (shown,) = [*decoder.decode(av.Packet(encoded.data)), *decoder.decode(None)]
    return shown


@pytest.mark.parametrize("scale", [1, 4])
@pytest.mark.parametrize("smooth", [False, True])
def test_rgb_and_i420_of_one_picture_become_the_same_stream_within_a_few_levels(scale: int, smooth: bool) -> None:
    frame = FrameSpec(width=64, height=48, scale=scale, fps=24, per_chunk=1, smooth=smooth)
    i420 = replace(frame, pixels=Pixels.I420)
    one = decoded(H264Encoder(frame, 8000, 8000).encode(gentle(), 0, False)).to_ndarray().astype(int)
    other = decoded(H264Encoder(i420, 8000, 8000).encode(planes(gentle(), frame), 0, False)).to_ndarray().astype(int)
    assert one.shape == other.shape == (72 * scale, 64 * scale)
    off = np.abs(one - other)
    assert off[: 48 * scale].mean() < 0.3 and off[48 * scale :].mean() < 1
    assert off.max() <= 3


@pytest.mark.parametrize("pixels", list(Pixels))
@pytest.mark.parametrize("colour", COLOURS)
def test_a_stream_says_bt709_limited_and_its_colours_come_back(pixels: Pixels, colour: str) -> None:
    frame = FrameSpec(width=64, height=48, scale=4, fps=24, per_chunk=1, pixels=pixels)
    rgb = np.full((48, 64, 3), COLOURS[colour], np.uint8)
    picture = rgb if pixels is Pixels.RGB else planes(rgb, frame)
    shown = decoded(H264Encoder(frame, 4000, 6000).encode(picture, 0, False))
    assert (shown.colorspace, shown.color_primaries, shown.color_trc, shown.color_range) == (1, 1, 1, 1)
    assert np.abs(shown.to_ndarray(format="rgb24").astype(int) - COLOURS[colour]).max() <= 2


def test_a_recording_says_and_keeps_its_colours(tmp_path: Path) -> None:
    frame = replace(FRAME, pixels=Pixels.I420)
    skin = planes(np.full((48, 64, 3), COLOURS["skin"], np.uint8), FRAME)
    recorder, encoder = Film(tmp_path / "skin.mp4", frame.fps), H264Encoder(frame, 2000, 6000)
    for number in range(5):
        encoded = encoder.encode(skin, number * 3750, False)
        recorder.frame(number * 3750, encoded.data, encoded.key)
    recorder.close()
    with av.open(str(tmp_path / "skin.mp4")) as movie:
        context = movie.streams.video[0].codec_context
        assert (context.colorspace, context.color_primaries, context.color_trc, context.color_range) == (1, 1, 1, 1)
        shown = [picture.to_ndarray(format="rgb24").astype(int) for picture in movie.decode(video=0)]
    assert len(shown) == 5
    assert max(np.abs(picture - COLOURS["skin"]).max() for picture in shown) <= 2


def test_planes_of_another_size_are_refused_with_the_numbers() -> None:
    encoder = H264Encoder(replace(FRAME, pixels=Pixels.I420), 1000, 6000)
    with pytest.raises(ValueError, match=r"I420 of \(288, 128\) is 128 x 192, shown 256 x 192"):
        encoder.encode(np.zeros((288, 128), np.uint8), 0, False)


def test_rows_of_planes_may_lie_apart() -> None:
    wide = np.zeros((288, 300), np.uint8)
    wide[:, :256] = planes(gentle(), FRAME)
    i420 = replace(FRAME, pixels=Pixels.I420)
    apart, together = (
        decoded(H264Encoder(i420, 8000, 8000).encode(made, 0, False)).to_ndarray()
        for made in (wide[:, :256], np.ascontiguousarray(wide[:, :256]))
    )
    assert np.array_equal(apart, together)


def test_a_storm_of_requests_makes_a_key_frame_every_three_hundred_milliseconds() -> None:
    gate = KeyGate()
    made = []
    for millisecond in range(0, 1000, 10):
        now = millisecond / 1000
        gate.request(joined=False, now=now)
        if gate.opens(now):
            gate.made(now)
            made.append(millisecond)
    assert made == [0, 300, 600, 900]


def test_a_request_inside_the_spacing_is_kept_until_it_is_over() -> None:
    gate = KeyGate()
    gate.made(10.0)
    gate.request(joined=False, now=10.1)
    assert not gate.opens(10.29)
    assert gate.opens(10.31)
    gate.made(10.31)
    assert not gate.opens(20.0)


def test_a_joining_viewer_passes_once() -> None:
    gate = KeyGate()
    gate.made(10.0)
    gate.request(joined=True, now=10.05)
    assert gate.opens(10.05)
    gate.made(10.05)
    gate.request(joined=True, now=10.10)
    assert not gate.opens(10.10)
    assert gate.opens(10.36)


def test_after_a_thrown_away_frame_the_next_one_is_a_key_frame() -> None:
    gate = KeyGate()
    gate.made(10.0)
    gate.broken()
    assert gate.opens(10.01)
