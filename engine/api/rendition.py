"""The ways a session's frames are encoded."""

from enum import StrEnum


class Rendition(StrEnum):
    """H264 is always made: recordings are of it. The others are made only while somebody asks for them.

    LOW: half as wide and half as high.
    """

    H264 = "h264"
    H264_LOW = "h264_low"
    VP8 = "vp8"
    VP8_LOW = "vp8_low"

    @property
    def low(self) -> bool:
        return self in (Rendition.H264_LOW, Rendition.VP8_LOW)
