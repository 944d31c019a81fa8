"""What is kept beside a film: a note for every frame, and once it is whole its length, its chapters, when somebody
pressed something, a thumbnail and a contact sheet. Blocking.

    3.mp4 (film)    3.jsonl (notes)    3.json (summary)    3.jpg (thumbnail)    3-sheet.jpg (up to 12 key frames)
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import msgspec
import numpy as np

from ...engine.api import Frame
from ...film import CLOCK, finish

SHEET_MOST = 12
SHEET_COLUMNS = 4
THUMB_WIDTH = 160
ACTIVITY_TICKS = CLOCK // 2


class FrameNote(msgspec.Struct, frozen=True):
    """What a frame of a film is and contains, as its receipt said. `at`: ticks (1/90000 s) of the film."""

    frame: int
    chunk: int
    epoch: int
    prompt_version: int
    input_seq: int
    controls: tuple[float, ...]
    pts: int
    hold_us: int
    wait_us: int
    step_us: int
    decode_us: int
    encode_us: int
    at: int = 0

    @classmethod
    def of(cls, frame: Frame, hold_us: int) -> "FrameNote":
        timings = frame.timings
        return cls(
            frame=frame.frame,
            chunk=frame.chunk,
            epoch=frame.epoch,
            prompt_version=frame.prompt_version,
            input_seq=frame.input_seq,
            controls=frame.controls,
            pts=frame.pts,
            hold_us=hold_us,
            wait_us=timings.wait_us,
            step_us=timings.step_us,
            decode_us=timings.decode_us,
            encode_us=timings.encode_us,
        )


class ChapterInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    at: int
    chunk: int
    epoch: int
    prompt_version: int


class RecordingInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One film. `began`: Unix seconds; `ticks`: its length in 1/90000 s. `activity`: pressed controls each half second.

    `dropped`: frames that the disk did not take in time; `cut_short`: why it ended early, '' if it did not. `resized`:
    its pictures become others than `width` x `height`, which its first one has.
    """

    name: str
    session: str
    room: str
    card: str
    began: float
    fps: int
    width: int = 0
    height: int = 0
    frames: int = 0
    ticks: int = 0
    bytes: int = 0
    dropped: int = 0
    cut_short: str = ""
    chapters: tuple[ChapterInfo, ...] = ()
    activity: tuple[int, ...] = ()
    resized: bool = False


def notes_of(film: Path) -> Iterator[FrameNote]:
    """The notes of a film, oldest first; a torn last line is left out."""
    decode = msgspec.json.Decoder(FrameNote).decode
    with open(film.with_suffix(".jsonl"), "rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield decode(line)


def complete(film: Path, info: RecordingInfo) -> RecordingInfo:
    """Write what is kept beside a whole film. Raises `OSError`."""
    chapters: list[ChapterInfo] = []
    activity: list[int] = []
    frames = ticks = 0
    for note in notes_of(film):
        frames, ticks = frames + 1, note.at
        intent = (note.epoch, note.prompt_version)
        if not chapters or intent != (chapters[-1].epoch, chapters[-1].prompt_version):
            chapters.append(ChapterInfo(note.at, note.chunk, note.epoch, note.prompt_version))
        slot = note.at // ACTIVITY_TICKS
        activity += [0] * (slot + 1 - len(activity))
        activity[slot] = max(activity[slot], sum(value != 0.0 for value in note.controls))
    (width, height), resized = _pictures(film)
    info = msgspec.structs.replace(
        info,
        width=width,
        height=height,
        frames=frames,
        ticks=ticks + CLOCK // info.fps if frames else 0,
        bytes=film.stat().st_size,
        chapters=tuple(chapters),
        activity=tuple(activity),
        resized=resized,
    )
    write_private(film.with_suffix(".json"), msgspec.json.encode(info))
    return info


def salvage(part: Path, info: RecordingInfo) -> RecordingInfo:
    """Make a whole film of what a killed server left. Raises `OSError`."""
    film = part.with_suffix("")
    finish(part, film)
    write_private(film.with_suffix(".jsonl"), b"".join(msgspec.json.encode(note) + b"\n" for note in _notes_in(film)))
    return complete(film, msgspec.structs.replace(info, cut_short="the server was killed"))


def _notes_in(film: Path) -> list[FrameNote]:
    """The notes of its frames from the film itself: those beside it may end earlier or later than its fragments."""
    decode, notes, shown = msgspec.json.Decoder(FrameNote).decode, [], set[int]()
    with av.open(str(film)) as container:
        for packet in container.demux(container.streams.video[0], *container.streams.data):
            if not packet.size or packet.pts is None or packet.time_base is None:
                continue
            at = round(packet.pts * packet.time_base * CLOCK)
            if packet.stream.type == "video":
                shown.add(at)
            else:
                notes.append(msgspec.structs.replace(decode(bytes(packet)), at=at))
    return [note for note in notes if note.at in shown]


def write_private(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


def _pictures(film: Path) -> tuple[tuple[int, int], bool]:
    """Thumbnail and contact sheet; width and height of the film, and whether a key frame has others."""
    with av.open(str(film)) as container:
        video = container.streams.video[0]
        width, height = video.width, video.height
        video.codec_context.skip_frame = "NONKEY"
        small = (THUMB_WIDTH, max(2, round(height * THUMB_WIDTH / width / 2) * 2))
        found: list[Any] = []
        resized = False
        with contextlib.suppress(av.FFmpegError):
            for picture in container.decode(video):
                resized = resized or (picture.width, picture.height) != (width, height)
                found.append(picture.reformat(*small, format="rgb24").to_ndarray())
                if len(found) > 4 * SHEET_MOST:
                    del found[1::2]  # evenly thinner, however many there are
    if found:
        write_private(film.with_suffix(".jpg"), jpeg(found[len(found) // 3]))
        write_private(film.with_name(film.stem + "-sheet.jpg"), jpeg(_sheet(found)))
    return (width, height), resized


def _sheet(pictures: Sequence[Any]) -> Any:
    step = max(1, len(pictures) // SHEET_MOST)
    chosen = list(pictures[::step][:SHEET_MOST])
    chosen += [np.zeros_like(chosen[0])] * (-len(chosen) % SHEET_COLUMNS)
    rows = [np.concatenate(chosen[i : i + SHEET_COLUMNS], axis=1) for i in range(0, len(chosen), SHEET_COLUMNS)]
    return np.concatenate(rows, axis=0)


def jpeg(rgb_HWC: Any) -> bytes:
    picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb_HWC), format="rgb24").reformat(format="yuvj420p")
    codec: Any = av.CodecContext.create("mjpeg", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = picture.width, picture.height, "yuvj420p", Fraction(1)
    return b"".join(bytes(packet) for packet in [*codec.encode(picture), *codec.encode(None)])
