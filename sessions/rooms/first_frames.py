"""An uploaded picture or video becomes the frames a world starts from. Blocking; called off the event loop.

    picture    PNG, JPEG, WebP          -> 1 frame                         image-to-world
    video      MP4, WebM                -> its last frames at the card's rate   continue-from-video

Everything is checked before it is believed: bytes, the file's own signature, pixels, length. A frame is turned as its
file says and fills the card's picture: what stands over at its sides, or above and below, is cut off evenly.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from fractions import Fraction

import av
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation
from av.video.stream import VideoStream
from numpy.typing import NDArray

from ...engine.api import CardInfo, FirstFrames, FirstFramesSize
from .picture_files import Torn, bare_png, jpeg_orientation, upright, webp_facts

PICTURE_BYTES_MAX = 8 << 20
VIDEO_BYTES_MAX = 32 << 20
PIXELS_MAX = 4096 * 4096
PIXELS_READ_MAX = 4 << 30
FRAMES_READ_MAX = 12_000
"""What may have to be decoded before the wanted frames: recordings have few key frames, ours have one."""
TAIL_S = Fraction(1, 2)
WIDE_COLOURS = {16: "PQ (HDR10)", 18: "HLG (HDR)"}
WIDE_PRIMARIES = {9: "BT.2020"}
"""By the numbers of ITU-T H.273: transfer functions and primaries that no screen of ours shows as they are meant."""


class UploadedMedia(StrEnum):
    """What may be uploaded, by media type."""

    PNG = "image/png"
    JPEG = "image/jpeg"
    WEBP = "image/webp"
    MP4 = "video/mp4"
    WEBM = "video/webm"

    @property
    def moves(self) -> bool:
        return self in (UploadedMedia.MP4, UploadedMedia.WEBM)

    @property
    def bytes_max(self) -> int:
        return VIDEO_BYTES_MAX if self.moves else PICTURE_BYTES_MAX


_DEMUXERS = {
    UploadedMedia.PNG: "png_pipe",
    UploadedMedia.JPEG: "jpeg_pipe",
    UploadedMedia.WEBP: "webp_pipe",
    UploadedMedia.MP4: "mp4",
    UploadedMedia.WEBM: "matroska",
}


class BadFirstFrames(ValueError):
    """A file no world can start from; `code` for programs, the message for a person."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def read(data: bytes, media: UploadedMedia, card: CardInfo, size: FirstFramesSize) -> FirstFrames:
    """The frames in a file; raises `BadFirstFrames`."""
    if len(data) > media.bytes_max:
        raise BadFirstFrames("too_large", f"{len(data)} bytes, at most {media.bytes_max} of {media}")
    if not _signed(data, media):
        raise BadFirstFrames("not_that_format", f"these bytes are no {media}")
    try:
        frames = _tail(data, media, card.fps, size) if media.moves else [_picture(data, media, size)]
    except (av.FFmpegError, EOFError) as error:
        raise BadFirstFrames("unreadable", f"this {media} cannot be decoded: {type(error).__name__}") from error
    return FirstFrames.of(np.stack(frames))


async def live(pictures: AsyncIterator[VideoFrame], card: CardInfo, size: FirstFramesSize) -> FirstFrames:
    """The next pictures of a camera, as many as the card begins from, at its rate; raises `BadFirstFrames`."""
    wanted_s, slack_s = Fraction(size.frames - 1, card.fps), Fraction(1, 4 * card.fps)
    seen: list[tuple[Fraction, NDArray[np.uint8]]] = []
    async for picture in pictures:
        if picture.width * picture.height > PIXELS_MAX:
            raise BadFirstFrames("pixels", f"{picture.width} x {picture.height} pixels, at most {PIXELS_MAX} in all")
        time = (picture.pts or 0) * (picture.time_base or Fraction(1, 90_000))
        seen.append((time, await asyncio.to_thread(_fitted, picture, size)))
        if time - seen[0][0] >= wanted_s:
            return FirstFrames.of(np.stack(list(_sampled(seen, size.frames, card.fps, slack_s))))
        if len(seen) > 4 * size.frames:
            raise BadFirstFrames("length", "the camera's pictures do not come one after the other")
    raise BadFirstFrames("length", f"the camera stopped before {size.frames} frames had come")


def _signed(data: bytes, media: UploadedMedia) -> bool:
    """Whether the file begins as its kind does."""
    match media:
        case UploadedMedia.PNG:
            return data.startswith(b"\x89PNG\r\n\x1a\n")
        case UploadedMedia.JPEG:
            return data.startswith(b"\xff\xd8\xff")
        case UploadedMedia.WEBP:
            return data.startswith(b"RIFF") and data[8:12] == b"WEBP"
        case UploadedMedia.MP4:
            return data[4:8] == b"ftyp"
        case UploadedMedia.WEBM:
            return data.startswith(b"\x1a\x45\xdf\xa3")


@contextmanager
def _opened(data: bytes, media: UploadedMedia) -> Iterator[InputContainer]:
    options = {"max_pixels": str(PIXELS_MAX)}
    with av.open(io.BytesIO(data), format=_DEMUXERS[media], options=options, metadata_errors="replace") as file:
        assert isinstance(file, InputContainer)
        yield file


def _stream(file: InputContainer) -> VideoStream:
    if not file.streams.video:
        raise BadFirstFrames("unreadable", "the file holds no picture")
    stream = file.streams.video[0]
    context: VideoCodecContext | None = stream.codec_context
    if context is None:
        raise BadFirstFrames("unreadable", "the film's codec is not known here")
    if not 0 < context.width * context.height <= PIXELS_MAX:
        raise BadFirstFrames("pixels", f"a picture of 1 to {PIXELS_MAX} pixels is needed")
    context.options = {"max_pixels": str(PIXELS_MAX), "err_detect": "explode"}
    stream.thread_type = "NONE"
    return stream


def _picture(data: bytes, media: UploadedMedia, size: FirstFramesSize) -> NDArray[np.uint8]:
    try:
        orientation = 1
        if media is UploadedMedia.PNG:
            data, orientation = bare_png(data)
        elif media is UploadedMedia.JPEG:
            orientation = jpeg_orientation(data)
        else:
            animated, orientation = webp_facts(data)
            if animated:
                raise BadFirstFrames("animated", "this WebP is animated: send one picture of it")
    except Torn:
        raise BadFirstFrames("torn", f"this {media} is cut off: it ends before its picture does") from None
    with _opened(data, media) as file:
        for frame in _decoded(file.decode(_stream(file))):
            return _covering(upright(_rgb(frame), orientation), size)
    raise BadFirstFrames("unreadable", "the file holds no picture")


def _tail(data: bytes, media: UploadedMedia, fps: int, size: FirstFramesSize) -> list[NDArray[np.uint8]]:
    """The last `size.frames` frames at `fps`, by their times; a frame that stands still is taken several times."""
    wanted_s, slack_s = Fraction(size.frames, fps), Fraction(1, 4 * fps)
    with _opened(data, media) as file:
        stream = _stream(file)
        packets, end_s = _last_packets(file, stream, wanted_s + TAIL_S)
        budget = PIXELS_READ_MAX // (stream.codec_context.width * stream.codec_context.height)
        if len(packets) > min(FRAMES_READ_MAX, budget):
            raise BadFirstFrames("length", f"{len(packets)} frames have to be read; send the end of it")
        seen: list[tuple[Fraction, NDArray[np.uint8]]] = []
        decoded = (frame for packet in [*packets, None] for frame in stream.decode(packet))
        for frame in _decoded(decoded):
            if frame.pts is None or stream.time_base is None:
                raise BadFirstFrames("unreadable", "a frame of the video has no time")
            time = frame.pts * (frame.time_base or stream.time_base)
            if time < end_s - wanted_s - slack_s and seen:
                seen.clear()  # only the last one before the wanted ones may be shown
            seen.append((time, _covering(np.rot90(_rgb(frame), frame.rotation // 90), size)))
    if not seen or seen[-1][0] - seen[0][0] < Fraction(size.frames - 1, fps) - slack_s:
        raise BadFirstFrames("length", f"a video of at least {size.frames} frames at {fps} a second is needed")
    return list(_sampled(seen, size.frames, fps, slack_s))


def _last_packets(
    file: InputContainer, stream: VideoStream, wanted_s: Fraction
) -> tuple[list["Packet[VideoStream]"], Fraction]:
    """Packets from the last key frame that leaves so much, and the time of the last picture.

    Demuxing all of a bounded file is cheap and needs neither a duration nor an index, which recordings lack.
    """
    packets = [packet for packet in file.demux(stream) if packet.pts is not None and packet.time_base is not None]
    if not packets:
        raise BadFirstFrames("unreadable", "the file holds no picture")
    times = [(packet.pts or 0) * (packet.time_base or Fraction(1)) for packet in packets]
    end_s = max(times)
    keys = [n for n, packet in enumerate(packets) if packet.is_keyframe and times[n] <= end_s - wanted_s]
    return packets[keys[-1] if keys else 0 :], end_s


def _sampled(
    seen: list[tuple[Fraction, NDArray[np.uint8]]], frames: int, fps: int, slack_s: Fraction
) -> Iterator[NDArray[np.uint8]]:
    """At each time of the grid that ends with the last frame, the frame that is on the screen then; containers round
    times by less than the slack."""
    last, at = seen[-1][0], 0
    for number in range(frames):
        time = last - Fraction(frames - 1 - number, fps)
        while at + 1 < len(seen) and seen[at + 1][0] <= time + slack_s:
            at += 1
        yield seen[at][1]


def _decoded(frames: Iterable[VideoFrame]) -> Iterator[VideoFrame]:
    """The frames, none of them too large or in colours that would come out wrong."""
    for frame in frames:
        if frame.width * frame.height > PIXELS_MAX:
            raise BadFirstFrames("pixels", f"{frame.width} x {frame.height} pixels, at most {PIXELS_MAX} in all")
        wide = WIDE_COLOURS.get(int(frame.color_trc)) or WIDE_PRIMARIES.get(int(frame.color_primaries))
        if wide is not None:
            raise BadFirstFrames("colours", f"its colours are {wide}: send it with those of a usual screen (BT.709)")
        yield frame


def _fitted(frame: VideoFrame, size: FirstFramesSize) -> NDArray[np.uint8]:
    return _covering(_rgb(frame), size)


def _rgb(frame: VideoFrame) -> NDArray[np.uint8]:
    """uint8 RGB [height, width, 3] as stored."""
    return np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)


def _covering(rgb_HWC: NDArray[np.uint8], size: FirstFramesSize) -> NDArray[np.uint8]:
    """uint8 RGB [height, width, 3] of the card's size."""
    has_height, has_width, _ = rgb_HWC.shape
    width = min(has_width, max(1, round(has_height * Fraction(size.width, size.height))))
    height = min(has_height, max(1, round(has_width * Fraction(size.height, size.width))))
    x, y = (has_width - width) // 2, (has_height - height) // 2
    cut = np.ascontiguousarray(rgb_HWC[y : y + height, x : x + width])
    shown = VideoFrame.from_ndarray(cut, format="rgb24").reformat(
        width=size.width, height=size.height, interpolation=Interpolation.BICUBIC, threads=1
    )
    return np.asarray(shown.to_ndarray(), np.uint8)
