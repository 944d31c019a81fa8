"""Small picture and video files for tests, written by PyAV."""

import io
from collections.abc import Sequence
from fractions import Fraction

import av
import numpy as np
from numpy.typing import NDArray
from worldroom.sessions.rooms.first_frames import UploadedMedia

_PICTURES = {
    UploadedMedia.PNG: ("png", "rgb24"),
    UploadedMedia.JPEG: ("mjpeg", "yuvj420p"),
    UploadedMedia.WEBP: ("libwebp", "yuv420p"),
}
_VIDEOS = {UploadedMedia.MP4: ("mp4", "libx264"), UploadedMedia.WEBM: ("webm", "libvpx")}


def picture(media: UploadedMedia, rgb_HWC: NDArray[np.uint8]) -> bytes:
    """One picture file."""
    codec, pixels = _PICTURES[media]
    context = av.CodecContext.create(codec, "w")
    context.height, context.width, _ = rgb_HWC.shape
    context.pix_fmt, context.time_base = pixels, Fraction(1, 25)
    frame = av.VideoFrame.from_ndarray(rgb_HWC, format="rgb24").reformat(format=pixels)
    frame.pts = 0
    return b"".join(bytes(packet) for packet in [*context.encode(frame), *context.encode(None)])


def video(media: UploadedMedia, levels: Sequence[int], fps: int, width: int = 96, height: int = 64) -> bytes:
    """A film of plain grey frames of these levels."""
    container, codec = _VIDEOS[media]
    held = io.BytesIO()
    with av.open(held, "w", format=container) as file:
        stream = file.add_stream(codec, rate=fps)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number, level in enumerate(levels):
            frame = av.VideoFrame.from_ndarray(np.full((height, width, 3), level, np.uint8), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, fps)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return held.getvalue()
