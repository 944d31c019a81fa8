"""A card's frames as PyAV takes them. One colour space: BT.709, limited range, 4:2:0 midway.

    RGB   -> swscale: enlarged and converted -> yuv420p of the shown size, or of half of it
    I420  -> as it lies, no copy             -> yuv420p of the shown size
          -> swscale                         -> yuv420p of half of it

Knows no encoder and no time.
"""

from typing import assert_never

import numpy as np
import numpy.typing as npt
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc, Interpolation

from ...models.contract.card import FrameSpec, Pixels

BT709 = 1
"""AVCOL_SPC_BT709: what streams and frames are marked with; `Colorspace` numbers are swscale's own."""
CHROMA_MIDWAY = "chromaloc=1"
"""For x264: a chroma sample lies in the middle of its four pixels."""
RGB_DIMENSIONS = 3


def mark(context: VideoCodecContext) -> None:
    """Say in the stream (H.264: VUI) what its colours are; before the context is opened."""
    context.colorspace, context.color_primaries, context.color_trc = BT709, ColorPrimaries.BT709, ColorTrc.BT709
    context.color_range = ColorRange.MPEG


def size(frame: FrameSpec, half: bool) -> tuple[int, int]:
    """Width and height of what is encoded; both even."""
    if half:
        return max(2, frame.shown_width // 4 * 2), max(2, frame.shown_height // 4 * 2)
    return frame.shown_width, frame.shown_height


def shown(picture: npt.NDArray[np.uint8], frame: FrameSpec, half: bool = False) -> VideoFrame:
    """yuv420p of the shown size, or of half of it. An I420 picture is read where it lies: nobody may change it later.

    One of two dimensions is I420, whatever the card makes. Raises ValueError with the sizes where planes do not fit.
    """
    width, height = size(frame, half)
    if frame.pixels is Pixels.RGB and picture.ndim == RGB_DIMENSIONS:
        return enlarged(picture, frame, width, height)
    planes = VideoFrame.from_numpy_buffer(np.ascontiguousarray(picture), format="yuv420p")
    if (planes.width, planes.height) != size(frame, half=False):
        was = f"{planes.width} x {planes.height}"
        raise ValueError(f"I420 of {picture.shape} is {was}, shown {frame.shown_width} x {frame.shown_height}")
    return planes.reformat(width=width, height=height, threads=1) if half else planes


def enlarged(picture: npt.NDArray[np.uint8], frame: FrameSpec, width: int, height: int) -> VideoFrame:
    """A card's picture as yuv420p of that size."""
    whole = np.ascontiguousarray(picture)
    interpolation = Interpolation.BICUBIC if frame.smooth else Interpolation.POINT
    match frame.pixels:
        case Pixels.RGB:
            return VideoFrame.from_numpy_buffer(whole, format="rgb24").reformat(
                width=width,
                height=height,
                format="yuv420p",
                interpolation=interpolation,
                dst_colorspace=Colorspace.ITU709,
                dst_color_range=ColorRange.MPEG,
                threads=1,
            )
        case Pixels.I420:
            planes = VideoFrame.from_numpy_buffer(whole, format="yuv420p")
            return planes.reformat(width=width, height=height, interpolation=interpolation, threads=1)
        case _:
            assert_never(frame.pixels)
