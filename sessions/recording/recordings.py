"""All recordings of a server: starts and stops them, lists the films in their folder, makes whole what a kill left.

<folder>/<session>/1.mp4, 2.mp4, ..
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...clock import Clock
from ..audience import Audience
from .recorder import SessionRecorder
from .summary import RecordingInfo, notes_of, salvage, write_private

log = logging.getLogger("worldroom.recording")

FINISH_S = 10.0
SUFFIXES = (".mp4", ".mp4.part", ".mp4.new", ".jsonl", ".json", ".jpg", "-sheet.jpg")


class Recordings:
    """See the module docstring. Everything but `close` and `salvaged` returns at once."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._running: dict[str, tuple[SessionRecorder, Audience]] = {}
        self._finishing: set[SessionRecorder] = set()
        self.frames_dropped = 0
        self.failed = 0

    def start(
        self, audience: Audience, session: str, room: str, card: str, fps: int, request_key: Callable[[], None]
    ) -> str:
        """The name of the recording, of the one that runs if there is one. Raises `OSError`."""
        running = self._running.get(session)
        if running is not None:
            return running[0].info.name
        folder = self._folder / session
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = str(1 + max((int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal()), default=0))
        info = RecordingInfo(name, session, room, card, self._clock.wall(), fps)
        path = folder / f"{name}.mp4"
        write_private(path.with_suffix(".json"), msgspec.json.encode(info))
        recorder = SessionRecorder(path, info, request_key, self._ended)
        self._running[session] = recorder, audience
        audience.observe(recorder.frame)
        return name

    def stop(self, session: str) -> bool:
        """False when it is not recorded. The film is whole a little later."""
        recorder, audience = self._running.pop(session, (None, None))
        if recorder is None or audience is None:
            return False
        audience.ignore(recorder.frame)
        self._finishing.add(recorder)
        recorder.stop()
        return True

    def running(self, session: str) -> str | None:
        running = self._running.get(session)
        return None if running is None else running[0].info.name

    def of(self, session: str) -> list[RecordingInfo]:
        """Blocking: films of a session, oldest first; those that are not whole yet have no length."""
        found = []
        for path in (self._folder / session).glob("*.json"):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=RecordingInfo))
            except (OSError, msgspec.MsgspecError):
                continue
        return sorted(found, key=lambda info: int(info.name))

    def path(self, session: str, name: str, suffix: str) -> Path | None:
        """A file of a film; None when there is none of that name."""
        if suffix not in SUFFIXES or not name.isdigit() or "/" in session or session.startswith("."):
            return None
        path = self._folder / session / f"{name}{suffix}"
        return path if path.is_file() else None

    def salvaged(self) -> int:
        """Blocking: make whole what a killed server left; how many films. One without a fragment is removed."""
        count = 0
        for part in self._folder.glob("*/*.mp4.part"):
            try:
                info = msgspec.json.decode(part.with_suffix("").with_suffix(".json").read_bytes(), type=RecordingInfo)
                salvage(part, info)
                count += 1
            except (OSError, msgspec.MsgspecError) as error:
                film = part.with_suffix("")
                if next(notes_of(film), None) is None:
                    for suffix in SUFFIXES:
                        film.with_name(film.stem + suffix).unlink(missing_ok=True)
                else:
                    log.warning("a film that was not finished cannot be: %s", error)
        return count

    def delete(self, session: str) -> int:
        """Blocking: remove the films of a session; how many bytes that were."""
        return delete_films(self._folder, session)

    async def close(self) -> None:
        """Finish every film; takes at most `FINISH_S`."""
        for session in list(self._running):
            self.stop(session)
        loop = asyncio.get_running_loop()
        for recorder in list(self._finishing):
            if not await loop.run_in_executor(None, recorder.wait, FINISH_S):
                log.warning("a recording of session %s is not finished; the next start does it", recorder.info.session)

    def _ended(self, recorder: SessionRecorder) -> None:
        """In the recorder's thread."""
        self._finishing.discard(recorder)
        self.frames_dropped += recorder.dropped
        self.failed += recorder.failed is not None


def delete_films(folder: Path, session: str) -> int:
    files = [path for path in (folder / session).glob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    for path in files:
        path.unlink(missing_ok=True)
    if (folder / session).is_dir():
        (folder / session).rmdir()
    return size
