"""Parts of the Python client that need no network."""

import asyncio
import fractions
from pathlib import Path

import av
import numpy as np
import pytest
from worldroom.clients.python.latency import LatencyLog, spread
from worldroom.clients.python.lenient import decode_known
from worldroom.clients.python.markers import read, read_luma
from worldroom.clients.python.pad import Pad
from worldroom.clients.python.room import join
from worldroom.clients.python.signalling import NoServer, RoomPlace, RoomRefused, retry_after_s
from worldroom.film import Film
from worldroom.models.toy import markers as drawn
from worldroom.rtc.wire import Applied, Participants, Person, Role, WireError


def toy_picture() -> np.ndarray:
    small = np.full((96, 160, 3), 90, np.uint8)
    drawn.draw(small, drawn.Marker(chunk=70_000, input_seq=12, time_ms=1_234_567))
    return np.kron(small, np.ones((4, 4, 1), np.uint8))


def encoded(pictures: list[np.ndarray]) -> list[tuple[bytes, bool]]:
    codec = av.CodecContext.create("libx264", "w")
    codec.width, codec.height, codec.pix_fmt = 640, 384, "yuv420p"
    codec.time_base = fractions.Fraction(1, 24)
    codec.options = {"preset": "ultrafast", "tune": "zerolatency", "x264-params": "annexb=1:repeat-headers=1"}
    out = []
    for picture in pictures:
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
        out += [(bytes(packet), packet.is_keyframe) for packet in codec.encode(frame)]
    return out


def test_the_toys_own_numbers_are_read_from_a_decoded_picture() -> None:
    (data, _), *_ = encoded([toy_picture()])
    decoder = av.CodecContext.create("h264", "r")
    picture = (decoder.decode(av.Packet(data)) + decoder.decode(None))[0]
    assert read(picture) == (70_000, 12, 1_234_567)


def test_a_picture_without_numbers_says_nothing() -> None:
    noise = np.random.default_rng(3).integers(0, 256, (384, 640), dtype=np.uint8)
    assert read_luma(noise) is None
    assert read_luma(np.zeros((10, 10), np.uint8)) is None


def test_a_recording_holds_the_received_frames_at_their_times(tmp_path: Path) -> None:
    path = tmp_path / "room.mp4"
    frames = encoded([toy_picture()] * 5)
    film = Film(path, 24)
    film.frame(0xFFFFFFFF - 3749, b"\x00\x00\x00\x01\x41early", False)
    for index, (data, key) in enumerate(frames):
        film.frame((0xFFFFFFFF - 3749 + 1 + index * 3750) & 0xFFFFFFFF, data, key)
    film.close()
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        times = [float(packet.pts * packet.time_base) for packet in container.demux(stream) if packet.size]
        container.seek(0)
        pictures = list(container.decode(stream))
    assert times == pytest.approx([0, 1 / 24, 2 / 24, 3 / 24, 4 / 24], abs=1e-4)
    assert len(pictures) == 5 and (pictures[0].width, pictures[0].height) == (640, 384)
    assert read(pictures[4]) == (70_000, 12, 1_234_567)


def test_a_second_stream_does_not_run_backwards(tmp_path: Path) -> None:
    path = tmp_path / "room.mp4"
    (data, _), *_ = encoded([toy_picture()])
    film = Film(path, 24)
    for rtp in (5_000_000, 5_003_750, 17, 3_767):
        film.frame(rtp, data, True)
    film.close()
    with av.open(str(path)) as container:
        times = [packet.pts for packet in container.demux(video=0) if packet.size]
    assert times == sorted(times) and len(set(times)) == 4


def test_inputs_are_whole_messages() -> None:
    pad = Pad()
    assert (pad.press("KeyW"), pad.press("KeyW"), pad.press("KeyA"), pad.release("KeyW")) == (1, 1, 2, 3)
    message = pad.message(5.0)
    assert (message.seq, message.held) == (3, ("KeyA",))
    assert [(edge.seq, edge.key, edge.down) for edge in message.edges] == [
        (1, "KeyW", True),
        (2, "KeyA", True),
        (3, "KeyW", False),
    ]
    assert pad.move(0.25, 0.0) == 4 and pad.message(6.0).pointer == (0.25, 0.0)
    for _ in range(40):
        pad.press("KeyX")
        pad.release("KeyX")
    assert len(pad.message(7.0).edges) == 16


def test_motion_to_photon_is_from_the_press_to_the_first_frame_that_contains_it() -> None:
    log = LatencyLog()
    for at in (1.00, 1.04, 1.08):
        log.decoded(at)
    log.pressed(1, 1.01)
    log.pressed(2, 1.05)
    log.contains(0, 1.04)
    log.contains(2, 1.08)
    log.contains(2, 1.12)
    assert list(log.photon_ms) == pytest.approx([70.0, 30.0])
    assert log.first_frame == 1.00 and log.intervals.count == 2
    log.reconnected()
    log.decoded(9.0)
    log.decoded(9.04)
    assert log.intervals.count == 3 and log.intervals.max == pytest.approx(40.0)


def test_spread_of_nothing_and_of_a_hundred() -> None:
    assert spread([]).count == 0
    whole = spread([float(n) for n in range(100)])
    assert (whole.p50, whole.p95, whole.p99, whole.min, whole.max) == (50.0, 95.0, 99.0, 0.0, 99.0)


def test_the_address_of_a_room() -> None:
    assert RoomPlace.of("http://127.0.0.1:8080/r/blue-otter-12") == RoomPlace("http://127.0.0.1:8080", "blue-otter-12")
    assert RoomPlace.of("http://127.0.0.1:8080/r/a").local and not RoomPlace.of("https://example.org/r/a").local
    assert RoomPlace.of("https://example.org/world/r/a#token=t") == RoomPlace("https://example.org/world", "a", "t")
    assert RoomPlace.of("http://host:8080/") == RoomPlace("http://host:8080", ""), "a fresh room"
    for wrong in ("127.0.0.1:8080", "ftp://host/r/a", "http://host/r/a/b"):
        with pytest.raises(ValueError, match="room's address"):
            RoomPlace.of(wrong)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("-7", 0.0),
        ("nan", None),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
        ("soon", None),
    ],
)
def test_case_82_retry_after_is_seconds_or_a_date_and_never_negative(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, now=10.0) == seconds


class Proxy:
    """Something that answers every offer in the same way, and counts them."""

    def __init__(self, status: str, headers: str, body: str) -> None:
        self._answer = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        self.asked = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        await reader.readexactly(length)
        self.asked += 1
        writer.write(self._answer)
        await writer.drain()
        writer.close()


DATE = "Thu, 01 Jan 2015 00:00:00 GMT"
REFUSAL = '{"code":"no_slot","detail":"full","reason":"no_slot","queue_place":0,"retry_after_s":-3.0,"figures":null}'


@pytest.mark.parametrize(
    ("status", "headers", "body", "error"),
    [
        ("503 Busy", f"Retry-After: {DATE}\r\n", "<h1>busy</h1>", RoomRefused),
        ("503 Busy", "", REFUSAL, RoomRefused),
        ("200 OK", "Content-Type: text/html\r\n", "<h1>Log in to the hotel</h1>", NoServer),
        ("502 Bad Gateway", "", "<h1>nginx</h1>", NoServer),
    ],
)
async def test_case_82_answers_that_are_none_of_ours_are_asked_again_with_growing_pauses_and_end_in_a_typed_error(
    status: str, headers: str, body: str, error: type[Exception]
) -> None:
    proxy = Proxy(status, headers, body)
    async with await asyncio.start_server(proxy.answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(error):
            async with join(f"http://127.0.0.1:{port}/r/a", loopback=True, patience=2.0):
                pass
    assert 2 <= proxy.asked <= 5


def test_case_83_what_a_newer_server_says_is_taken_as_far_as_it_is_known() -> None:
    assert decode_known('{"type":"weather","of":"tomorrow"}') is None
    applied = decode_known('{"type":"applied","id":3,"chunk":7,"colour":{"r":1}}')
    assert applied == Applied(id=3, chunk=7)
    here = decode_known(
        '{"type":"participants","driver":"a","you":"driver","spectators":0,"mood":1,'
        '"people":[{"participant":"a","name":"Ada","hat":"red"}]}'
    )
    assert here == Participants("a", Role.DRIVER, 0, (Person("a", "Ada"),))
    with pytest.raises(WireError):
        decode_known('{"type":"applied","id":"three","chunk":7}')
    with pytest.raises(WireError):
        decode_known("no JSON")
