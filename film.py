"""Films: H.264 frames as they were sent, written to a fragmented MP4 and never encoded again.

    <name>.part   moov | moof mdat | moof mdat | ...      short fragments: a writer that is killed leaves these
    <name>        moov (chapters) | mdat                  after `close`: one index, seekable at once

With `notes`, a second track of data carries one note a frame. Knows bytes, times and a path; blocking.

A stream may change its size at a key frame, which brings its own parameter sets, and the film goes on. Such a film is
marked `avc3` (ISO/IEC 14496-15: parameter sets in the samples count), as every part is, for nobody knows yet how
it goes on. One that keeps its size is the usual `avc1`.
"""

import contextlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av

CLOCK = 90_000
GAP_MOST = 2 * CLOCK
"""A longer silence (a pause, a suspended world) is shown as this long."""
FRAGMENT_US = 300_000
IN_BAND, AHEAD = "avc3", "avc1"
"""Where parameter sets count: in the key frames, or those at the head of the film for all of it."""
_TIME_BASE = Fraction(1, CLOCK)
_PARAMETER_SETS = (7, 8)


@dataclass(frozen=True, slots=True)
class Chapter:
    """From `at` (ticks of the film) on."""

    at: int
    title: str


class Film:
    """Starts at the first key frame. Raises `OSError` when the disk does not take it; what it took stays playable."""

    def __init__(self, path: Path, fps: int = 24, notes: bool = False) -> None:
        self._path, self._part = path, path.with_name(path.name + ".part")
        self.fps, self._notes = fps, notes
        self._file: _Appended | None = _Appended(self._part)
        self._container: Any = None
        self._video: Any = None
        self._note_stream: Any = None
        self._first_tick = 0
        self._chapters: list[Chapter] = []
        self.frames = 0
        self.ticks = -1
        """When the last frame is shown, in ticks of the film."""

    def frame(self, tick: int, annex_b: bytes, key: bool, note: bytes = b"") -> bool:
        """One whole frame; False before the first key frame. `tick`: on a 32-bit clock of 90 kHz that may jump.

        A film's own times never run backwards.
        """
        if self._video is None:
            if not key:
                return False
            self._open(annex_b)
            self._first_tick = tick
        step = CLOCK // self.fps
        at = (tick - self._first_tick) & 0xFFFFFFFF
        if not self.ticks < at < self.ticks + GAP_MOST:
            at = self.ticks + (step if at <= self.ticks or at > self.ticks + 3600 * CLOCK else GAP_MOST)
            self._first_tick = (tick - at) & 0xFFFFFFFF
        self.ticks = at
        if self._note_stream is not None:
            self._mux(note, self._note_stream, at, step, True)
        self._mux(annex_b, self._video, at, step, key)
        self.frames += 1
        return True

    def chapter(self, title: str) -> None:
        """The next frame begins a chapter."""
        at = self.ticks + 1 if self.frames else 0
        if self._chapters and self._chapters[-1].at == at:
            self._chapters.pop()
        self._chapters.append(Chapter(at, title))

    def close(self) -> None:
        """The whole film under its name; without a frame there is none, and an older film of that name stays."""
        if self.frames == 0:
            self.discard()
            return
        self.end()
        finish(self._part, self._path, self._chapters)

    def discard(self) -> None:
        """Stop writing and leave nothing; an older film of that name stays."""
        self.end()
        self._part.unlink(missing_ok=True)

    def end(self) -> None:
        """Stop writing and leave the fragments."""
        if self._container is not None:
            with contextlib.suppress(av.FFmpegError):
                self._container.close()
            self._container = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _mux(self, data: bytes, stream: Any, at: int, step: int, key: bool) -> None:
        packet = av.Packet(data)
        packet.stream, packet.time_base = stream, _TIME_BASE
        packet.pts = packet.dts = at
        packet.duration, packet.is_keyframe = step, key
        try:
            self._container.mux_one(packet)
        except av.FFmpegError as error:
            failed = self._file.failed if self._file is not None else None
            raise failed or OSError(str(error)) from None

    def _open(self, annex_b: bytes) -> None:
        """A stream with the sizes and parameter sets of a key frame, which FFmpeg's H.264 reader finds in it."""
        options = {"movflags": "empty_moov+default_base_moof+frag_keyframe", "frag_duration": str(FRAGMENT_US)}
        self._container = av.open(self._file, "w", format="mp4", options=options)
        with av.open(io.BytesIO(annex_b), "r", format="h264") as probe:
            self._video = _same_video(self._container, probe.streams.video[0], IN_BAND)
        self._video.time_base = _TIME_BASE
        if self._notes:
            self._note_stream = self._container.add_data_stream("bin_data")
            self._note_stream.time_base = _TIME_BASE


class _Appended:
    """The file as PyAV writes it. `failed`: why the disk stopped taking it."""

    name = "film.mp4"

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self.failed: OSError | None = None

    def write(self, data: bytes) -> int:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as error:
            self.failed = error
            raise
        return written

    def close(self) -> None:
        os.close(self._fd)


def finish(part: Path, path: Path, chapters: Sequence[Chapter] = ()) -> None:
    """Make the film of a part, also of one that a killed writer left; the part is gone when the film is whole.

    Raises `OSError` (and then the part stays).
    """
    fresh = path.with_name(path.name + ".new")
    try:
        if not _copied(part, fresh, chapters, AHEAD):
            _copied(part, fresh, chapters, IN_BAND)
        os.replace(fresh, path)
    except av.FFmpegError as error:
        fresh.unlink(missing_ok=True)
        raise OSError(f"the film {path} could not be finished: {error}") from None
    part.unlink()


def _copied(part: Path, fresh: Path, chapters: Sequence[Chapter], sets: str) -> bool:
    """False = given up, because a film whose sets are ahead meets others."""
    with av.open(str(part), "r") as source, av.open(str(fresh), "w", format="mp4") as target:
        copies: dict[int, Any] = {}
        for stream in source.streams:
            if stream.type == "video":
                copies[stream.index] = _same_video(target, stream, sets)
            elif stream.type == "data":
                copies[stream.index] = target.add_data_stream("bin_data")
                copies[stream.index].time_base = _TIME_BASE
        if chapters:
            target.set_chapters(_marks(chapters, round((source.duration or 0) * CLOCK / av.time_base)))
        first: tuple[bytes, ...] = ()
        for packet in source.demux(*[stream for stream in source.streams if stream.index in copies]):
            if not packet.size:
                continue
            if sets == AHEAD and packet.stream.type == "video" and packet.is_keyframe:
                found = _parameter_sets(bytes(packet))
                first = first or found
                if found != first:
                    return False
            packet.stream = copies[packet.stream.index]
            target.mux(packet)
    return True


def _same_video(container: Any, template: Any, sets: str) -> Any:
    stream = container.add_stream_from_template(template)
    stream.codec_context.codec_tag = sets
    return stream


def _parameter_sets(sample: bytes) -> tuple[bytes, ...]:
    """Of a sample of an MP4: units with their length in four bytes before each."""
    found, at = [], 0
    while at + 4 < len(sample):
        end = at + 4 + int.from_bytes(sample[at : at + 4], "big")
        if sample[at + 4] & 31 in _PARAMETER_SETS:
            found.append(sample[at + 4 : end])
        at = end
    return tuple(found)


def _marks(chapters: Sequence[Chapter], length: int) -> list[Any]:
    ends = [chapter.at for chapter in chapters[1:]] + [max(length, chapters[-1].at + 1)]
    return [
        {
            "id": number,
            "start": chapter.at,
            "end": end,
            "time_base": _TIME_BASE,
            "metadata": {"title": chapter.title},
        }
        for number, (chapter, end) in enumerate(zip(chapters, ends, strict=True))
    ]
