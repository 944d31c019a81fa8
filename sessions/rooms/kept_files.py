"""Where suspended rooms wait for the next start where there is no Redis: one file a key, each for a while. As much of a
Redis client as `SuspendStore` takes."""

import asyncio
import contextlib
import os
from pathlib import Path
from urllib.parse import quote

from ...clock import Clock


class KeptFiles:
    """A file's time of change is when it is forgotten. Calls raise OSError."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock

    async def set(self, name: str, value: bytes, ex: int) -> None:
        """For `ex` seconds."""
        await asyncio.to_thread(self._set, name, value, self._clock.wall() + ex)

    async def get(self, name: str) -> bytes | None:
        return await asyncio.to_thread(self._get, name)

    async def delete(self, name: str) -> None:
        await asyncio.to_thread(self._path(name).unlink, missing_ok=True)

    def _set(self, name: str, value: bytes, until: float) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(name)
        fresh = path.with_name(f"{path.name}.new")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(value)
        os.utime(fresh, (until, until))
        os.replace(fresh, path)

    def _get(self, name: str) -> bytes | None:
        path = self._path(name)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime >= self._clock.wall():
                return path.read_bytes()
            path.unlink()
        return None

    def _path(self, name: str) -> Path:
        return self._folder / quote(name, safe="")
