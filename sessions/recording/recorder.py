"""Records one session: takes frames as viewers get them and writes them in a thread of its own.

    frame() on the event loop -> bounded queue -> thread -> film (.part), notes (.jsonl)    never waits or raises

Waking a thread costs more than writing a frame, so it gathers those of a fifth of a second. A writer that is killed
loses them and the fragment they were to be in: half a second at most.
A disk that is slow costs frames of the film, from the first that does not fit to the next key frame. One that is full
ends the recording; what it took stays. Knows no viewer and no journal.
"""

import logging
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...engine.api import Frame
from ...film import Film
from .summary import FrameNote, RecordingInfo, complete

log = logging.getLogger("worldroom.recording")

QUEUED_BYTES_MAX = 32 << 20
GATHER_S = 0.2
FLUSH_TICKS = 27_000
"""As long as a fragment of the film."""


@dataclass(frozen=True, slots=True)
class _Taken:
    frame: Frame
    hold_us: int


class SessionRecorder:
    """One film. Starts at the next key frame, which it asks for. `on_end` is called in the thread, once."""

    def __init__(
        self,
        path: Path,
        info: RecordingInfo,
        request_key: Callable[[], None],
        on_end: Callable[["SessionRecorder"], None] = lambda recorder: None,
    ) -> None:
        """Raises `OSError` when the film cannot be begun."""
        self.path, self.info = path, info
        self._film = Film(path, info.fps, notes=True)
        self._notes = os.fdopen(os.open(path.with_suffix(".jsonl"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        self._request_key, self._on_end = request_key, on_end
        self._queue: queue.SimpleQueue[_Taken | None] = queue.SimpleQueue()
        self._queued, self._lock = 0, threading.Lock()
        self._gap, self._ended, self._hurry = False, False, threading.Event()
        self._intent: tuple[int, int] | None = None
        self._flushed = 0
        self.dropped = 0
        self.failed: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"recording {info.session}", daemon=True)
        self._thread.start()
        request_key()

    @property
    def ended(self) -> bool:
        return self._ended

    def frame(self, frame: Frame, hold_us: int) -> None:
        """One frame as it goes out."""
        if self._ended or self.failed is not None:
            return
        if self._gap and not frame.key:
            self.dropped += 1
            return
        with self._lock:
            full = self._queued + len(frame.data) > QUEUED_BYTES_MAX
            if not full:
                self._queued += len(frame.data)
        if full:
            self.dropped += 1
            if frame.key or not self._gap:
                self._request_key()
            self._gap = True
            return
        self._gap = False
        self._queue.put(_Taken(frame, hold_us))

    def stop(self) -> None:
        """Finish the film in the background."""
        if not self._ended:
            self._ended = True
            self._queue.put(None)
            self._hurry.set()

    def wait(self, timeout_s: float) -> bool:
        """Blocking: whether the film is finished by then."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # ---- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._write_gathered():
                pass
            self._finish()
        except Exception as error:
            log.exception("a recording of session %s was not finished", self.info.session)
            self.failed = self.failed or str(error)
        finally:
            self._on_end(self)

    def _write_gathered(self) -> bool:
        """Wait for frames and write them; False when there will be no more."""
        gathered = [self._queue.get()]
        self._hurry.wait(GATHER_S)
        gathered += [self._queue.get() for _ in range(self._queue.qsize())]
        for taken in gathered:
            if taken is None:
                return False
            with self._lock:
                self._queued -= len(taken.frame.data)
            if self.failed is None:
                self._write(taken)
        return True

    def _write(self, taken: _Taken) -> None:
        frame = taken.frame
        try:
            intent = frame.epoch, frame.prompt_version
            if intent != self._intent and (self._film.frames or frame.key):
                self._film.chapter(f"epoch {frame.epoch}, prompt {frame.prompt_version}")
                self._intent = intent
            note = FrameNote.of(frame, taken.hold_us)
            if self._film.frame(frame.pts & 0xFFFFFFFF, frame.data, frame.key, msgspec.json.encode(note)):
                self._notes.write(msgspec.json.encode(msgspec.structs.replace(note, at=self._film.ticks)) + b"\n")
            if self._film.ticks - self._flushed >= FLUSH_TICKS:
                self._flushed = self._film.ticks
                self._notes.flush()
        except (OSError, ValueError) as error:
            self.failed = str(error)
            log.error("the recording of session %s ends: %s", self.info.session, error)

    def _finish(self) -> None:
        try:
            self._notes.close()
        except OSError as error:
            self.failed = self.failed or str(error)
        frames = self._film.frames
        try:
            self._film.close()
        except OSError as error:
            self.failed = self.failed or str(error)
            self._film.end()
            return
        if frames:
            info = msgspec.structs.replace(self.info, dropped=self.dropped, cut_short=self.failed or "")
            complete(self.path, info)
        else:
            self.path.with_suffix(".jsonl").unlink(missing_ok=True)
