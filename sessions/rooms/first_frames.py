"""An uploaded picture or video becomes the frames a world starts from. Blocking; called off the event loop.

    picture    PNG, JPEG, WebP          -> 1 frame                         image-to-world
    video      MP4, WebM                -> its last frames at the card's rate   continue-from-video

Everything is checked before it is believed: bytes, the file's own signature, pixels, length. A frame fills the card's
picture: what stands over at its sides, or above and below, is cut off evenly and the rest is scaled.
"""

import io
from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from fractions import Fraction

import av
import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation
from av.video.stream import VideoStream
from numpy.typing import NDArray

from ...engine.api import CardInfo, FirstFrames, FirstFramesSize

PICTURE_BYTES_MAX = 8 << 20
VIDEO_BYTES_MAX = 32 << 20
PIXELS_MAX = 4096 * 4096
FRAMES_READ_MAX = 1200
TAIL_S = 2.0
"""So much before the wanted frames a video is read from: key frames are seldom nearer."""


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
        with av.open(io.BytesIO(data), format=_DEMUXERS[media], options={"max_pixels": str(PIXELS_MAX)}) as file:
            assert isinstance(file, InputContainer)
            frames = _tail(file, card.fps, size) if media.moves else [_covering(_first(file), size)]
    except (av.FFmpegError, EOFError) as error:
        raise BadFirstFrames("unreadable", f"this {media} cannot be decoded: {type(error).__name__}") from error
    return FirstFrames.of(np.stack(frames))


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


def _stream(file: InputContainer) -> VideoStream:
    if not file.streams.video:
        raise BadFirstFrames("unreadable", "the file holds no picture")
    stream = file.streams.video[0]
    context = stream.codec_context
    if not 0 < context.width * context.height <= PIXELS_MAX:
        raise BadFirstFrames("pixels", f"a picture of 1 to {PIXELS_MAX} pixels is needed")
    context.options = {"max_pixels": str(PIXELS_MAX), "err_detect": "explode"}
    stream.thread_type = "NONE"
    return stream


def _first(file: InputContainer) -> VideoFrame:
    for frame in _decoded(file):
        return frame
    raise BadFirstFrames("unreadable", "the file holds no picture")


def _tail(file: InputContainer, fps: int, size: FirstFramesSize) -> list[NDArray[np.uint8]]:
    """The last `size.frames` frames at `fps`, by their times; a frame that stands still is taken several times."""
    wanted_s, slack_s = Fraction(size.frames, fps), Fraction(1, 4 * fps)
    if file.duration is not None:
        start, behind = file.start_time or 0, int((wanted_s + Fraction(TAIL_S)) * av.time_base)
        file.seek(max(start, start + file.duration - behind))
    seen: deque[tuple[Fraction, NDArray[np.uint8]]] = deque()
    for count, frame in enumerate(_decoded(file)):
        if count >= FRAMES_READ_MAX:
            raise BadFirstFrames("length", f"more than {FRAMES_READ_MAX} frames have to be read; send the end of it")
        if frame.pts is None or frame.time_base is None:
            raise BadFirstFrames("unreadable", "a frame of the video has no time")
        seen.append((frame.pts * frame.time_base, _covering(frame, size)))
        while len(seen) > 1 and seen[1][0] < seen[-1][0] - wanted_s:
            seen.popleft()
    if not seen or seen[-1][0] - seen[0][0] < Fraction(size.frames - 1, fps) - slack_s:
        raise BadFirstFrames("length", f"a video of at least {size.frames} frames at {fps} a second is needed")
    return list(_sampled(list(seen), size.frames, fps, slack_s))


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


def _decoded(file: InputContainer) -> Iterator[VideoFrame]:
    """Frames of the first picture stream, none of them too large."""
    for frame in file.decode(_stream(file)):
        if frame.width * frame.height > PIXELS_MAX:
            raise BadFirstFrames("pixels", f"{frame.width} x {frame.height} pixels, at most {PIXELS_MAX} in all")
        yield frame


def _covering(frame: VideoFrame, size: FirstFramesSize) -> NDArray[np.uint8]:
    """uint8 RGB [height, width, 3] of the card's size."""
    width = min(frame.width, max(1, round(frame.height * Fraction(size.width, size.height))))
    height = min(frame.height, max(1, round(frame.width * Fraction(size.height, size.width))))
    x, y = (frame.width - width) // 2, (frame.height - height) // 2
    cut = np.ascontiguousarray(frame.to_ndarray(format="rgb24")[y : y + height, x : x + width], np.uint8)
    shown = VideoFrame.from_ndarray(cut, format="rgb24").reformat(
        width=size.width, height=size.height, interpolation=Interpolation.BICUBIC, threads=1
    )
    return np.asarray(shown.to_ndarray(), np.uint8)
