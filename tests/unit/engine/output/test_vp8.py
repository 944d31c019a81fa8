"""VP8 for who has no H.264: decodes, key frames only when asked, half of the size for the low rung."""

import av
import numpy as np
import pytest
from worldroom.engine.output.encode import EncodedFrame, H264Encoder
from worldroom.engine.output.vp8 import Vp8Encoder
from worldroom.models.contract.card import FrameSpec

FRAME = FrameSpec(width=64, height=48, scale=4, fps=24, per_chunk=1)


def picture(number: int) -> np.ndarray:
    noise = np.random.default_rng(number).integers(0, 24, (48, 64, 3))
    y, x = np.mgrid[0:48, 0:64]
    return (((x + 3 * number) * 7 % 160 + y * 2 % 70)[..., None] + noise).astype(np.uint8)


def encode(
    encoder: Vp8Encoder | H264Encoder, count: int, keys: tuple[int, ...] = (), start: int = 0
) -> list[EncodedFrame]:
    return [encoder.encode(picture(n), n * 3750, n in keys) for n in range(start, start + count)]


def test_every_frame_is_one_packet_that_decodes_and_one_request_is_one_key_frame() -> None:
    made = encode(Vp8Encoder(FRAME, 1000, 6000), 60, keys=(40,))
    assert [n for n, encoded in enumerate(made) if encoded.key] == [0, 40]
    decoder = av.CodecContext.create("vp8", "r")
    pictures = [picture for encoded in made for picture in decoder.decode(av.Packet(encoded.data))]
    assert [(each.width, each.height) for each in pictures] == [(256, 192)] * 60


def test_a_rate_a_little_off_waits_for_the_next_wanted_key_frame_and_one_far_off_does_not() -> None:
    encoder = Vp8Encoder(FRAME, 2000, 6000)
    encode(encoder, 24)
    encoder.set_bitrate(1600)
    assert not any(encoded.key for encoded in encode(encoder, 24, start=24))
    before = encode(encoder, 48, keys=(48,), start=48)
    assert [n for n, encoded in enumerate(before) if encoded.key] == [0]
    encoder.set_bitrate(500)
    after = encode(encoder, 48, start=96)
    assert [n for n, encoded in enumerate(after) if encoded.key] == [0]
    rates = [sum(len(encoded.data) for encoded in part[12:]) for part in (before, after)]
    assert rates[1] < 0.6 * rates[0]


@pytest.mark.parametrize(("kind", "codec"), [(Vp8Encoder, "vp8"), (H264Encoder, "h264")])
def test_the_low_rung_is_half_as_wide_and_high(kind: type[Vp8Encoder | H264Encoder], codec: str) -> None:
    decoder = av.CodecContext.create(codec, "r")
    encoded = kind(FRAME, 300, 6000, half=True).encode(picture(0), 0, True)
    (shown,) = [*decoder.decode(av.Packet(encoded.data)), *decoder.decode(None)]
    assert (shown.width, shown.height) == (128, 96)
    rgb = shown.to_ndarray(format="rgb24").astype(int)
    # As the browser would show it: the same colours as the whole picture.
    assert abs(rgb.mean() - picture(0).mean()) < 4
