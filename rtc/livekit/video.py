"""A world's video as a track of LiveKit: its packets as they are where the SDK can, else pictures.

The SDK's `EncodedVideoSource` hands H.264 on without touching it. An SDK without one gets the decoded pictures and
encodes them itself, once more.
"""

from dataclasses import dataclass
from typing import Protocol

import av
from livekit import rtc

from ...engine.api import Frame

TRACK = "world"
PTS_HZ = 90_000


@dataclass(frozen=True, slots=True)
class TrackFeedback:
    """Since it was asked last. `kbps` None = nothing was said of the rate."""

    wants_key: bool = False
    kbps: int | None = None


class VideoTrack(Protocol):
    """`show` takes every frame in order; the first one it shows is a key frame."""

    local: rtc.LocalVideoTrack
    options: rtc.TrackPublishOptions

    def show(self, frame: Frame) -> None: ...

    def feedback(self) -> TrackFeedback: ...


def video_track(width: int, height: int) -> VideoTrack:
    encoded = hasattr(rtc, "EncodedVideoSource") and hasattr(rtc, "VideoEncoderBackend")
    return PassedOnTrack(width, height) if encoded else PictureTrack(width, height)


class PassedOnTrack:
    """Encoded once by the engine, for everybody here and there."""

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self._source = rtc.EncodedVideoSource(width, height)
        # The SDK takes either kind of source.
        self.local = rtc.LocalVideoTrack.create_video_track(TRACK, self._source)  # type: ignore[arg-type,unused-ignore]
        self.options = rtc.TrackPublishOptions(
            source=rtc.TrackSource.SOURCE_CAMERA,
            video_codec=rtc.VideoCodec.H264,
            simulcast=False,
            video_encoder=rtc.VideoEncoderBackend.ENCODER_BACKEND_PRE_ENCODED,
        )
        self._needs_key = True

    def show(self, frame: Frame) -> None:
        if self._needs_key and not frame.key:
            return
        kind = rtc.EncodedFrameType.ENCODED_FRAME_KEY if frame.key else rtc.EncodedFrameType.ENCODED_FRAME_DELTA
        taken = self._source.capture_frame(
            rtc.EncodedVideoFrame(frame.data, *self._size, rtc.VideoCodec.H264, kind, _microseconds(frame))
        )
        self._needs_key = not taken

    def feedback(self) -> TrackFeedback:
        told = self._source.take_feedback()
        rate = None if told.rate_control is None else told.rate_control.target_bitrate_bps // 1000
        return TrackFeedback(told.keyframe_requested or self._needs_key, rate)


class PictureTrack:
    """Decoded here, encoded by the SDK at its own rate and size."""

    def __init__(self, width: int, height: int) -> None:
        self._source = rtc.VideoSource(width, height)
        self.local = rtc.LocalVideoTrack.create_video_track(TRACK, self._source)
        self.options = rtc.TrackPublishOptions(
            source=rtc.TrackSource.SOURCE_CAMERA, video_codec=rtc.VideoCodec.H264, simulcast=False
        )
        self._decoder = av.CodecContext.create("h264", "r")
        self._needs_key = True

    def show(self, frame: Frame) -> None:
        if self._needs_key and not frame.key:
            return
        self._needs_key = False
        try:
            pictures = self._decoder.decode(av.Packet(frame.data))
        except av.FFmpegError:
            self._needs_key = True
            return
        for picture in pictures:
            assert isinstance(picture, av.VideoFrame)
            data = picture.to_ndarray(format="yuv420p").tobytes()
            shown = rtc.VideoFrame(picture.width, picture.height, rtc.VideoBufferType.I420, data)
            self._source.capture_frame(shown, timestamp_us=_microseconds(frame))

    def feedback(self) -> TrackFeedback:
        return TrackFeedback(self._needs_key)


def _microseconds(frame: Frame) -> int:
    return frame.pts * 1_000_000 // PTS_HZ
