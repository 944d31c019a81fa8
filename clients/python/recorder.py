"""Saves what was received as MP4: the H.264 frames themselves with their RTP times, never encoded again."""

import fractions
import io
from pathlib import Path

import av

CLOCK = 90_000


class Recorder:
    """`frame` fits `RoomClient.tap_frame`. Starts at the first key frame; frames before it are not kept."""

    def __init__(self, path: Path, fps: int) -> None:
        self._container = av.open(str(path), "w", format="mp4")
        self._fps = fps
        self._stream: av.VideoStream | None = None
        self._first_rtp = 0
        self._last_pts = -1
        self.frames = 0

    def frame(self, rtp: int, annex_b: bytes, key: bool) -> None:
        """One whole frame; times never run backwards, whatever a reconnect does to RTP."""
        if self._stream is None:
            if not key:
                return
            self._stream = self._open(annex_b)
            self._first_rtp = rtp
        pts = (rtp - self._first_rtp) & 0xFFFFFFFF
        if not self._last_pts < pts < self._last_pts + 60 * CLOCK:
            pts = self._last_pts + CLOCK // self._fps
            self._first_rtp = (rtp - pts) & 0xFFFFFFFF
        self._last_pts = pts
        packet = av.Packet(annex_b)
        packet.stream = self._stream
        packet.time_base = fractions.Fraction(1, CLOCK)
        packet.pts = packet.dts = pts
        packet.is_keyframe = key
        self._container.mux(packet)
        self.frames += 1

    def close(self) -> None:
        """Finish the file; one without a frame is empty."""
        self._container.close()

    def _open(self, annex_b: bytes) -> av.VideoStream:
        """A stream with the sizes and parameter sets of a key frame, which FFmpeg's H.264 reader finds in it."""
        with av.open(io.BytesIO(annex_b), "r", format="h264") as probe:
            stream = self._container.add_stream_from_template(probe.streams.video[0])
        stream.time_base = fractions.Fraction(1, CLOCK)
        return stream
