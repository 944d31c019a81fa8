"""Latents of chunks, kept beside the archived journal of their session: for replays of tolerant cards, and trainers.

    <archive>/<session>/latents/<digest>.npy     written once, by a task in the background; gone with the session

A journal refers to them by digest alone. What waits and what is written is bounded; what is left out is counted.
"""

import asyncio
import hashlib
import logging
from collections import deque
from dataclasses import dataclass, field

from .archive import Archive, ArchiveError

log = logging.getLogger("worldroom.journal")

EVERY = 16
"""Chunks from one kept to the next, of a card that owes a tolerance."""
FOLDER = "latents"
NAME_MOST = 128
SIZES_MOST = 1024
"""Sessions whose bytes are known without looking; of others they are counted again."""


@dataclass(frozen=True, slots=True)
class LatentsSpec:
    """`every`: so many chunks apart, 0 = none; None = `EVERY` of a card that owes a tolerance, none of one whose chunks
    have the same bits again. `session_bytes`: at most so many of a session. `waiting_bytes`: of all, not written yet.
    """

    every: int | None = None
    session_bytes: int = 1 << 30
    waiting_bytes: int = 64 << 20


@dataclass(slots=True)
class LatentsCounters:
    """`kept`, `dropped`: chunks; dropped ones found no room in memory or in what a session may have, or no archive."""

    kept: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    session: str
    digest: str
    data: bytes


@dataclass(slots=True)
class LatentsKeeper:
    """Takes latents (`keep`) and writes them in a task of its own (`start`)."""

    archive: Archive
    spec: LatentsSpec = field(default_factory=LatentsSpec)
    counters: LatentsCounters = field(default_factory=LatentsCounters)
    _waiting: "deque[_Kept]" = field(default_factory=deque)
    _waiting_bytes: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="latents")

    async def close(self) -> None:
        """What waits is written first."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task

    def every(self, tolerance: float) -> int:
        """Chunks from one kept to the next, of a card with that tolerance; 0 = none."""
        if self.spec.every is not None:
            return self.spec.every
        return EVERY if tolerance else 0

    def keep(self, session: str, digest: str, data: bytes) -> None:
        """Never waits."""
        if self._closing or self._waiting_bytes + len(data) > self.spec.waiting_bytes:
            self._drop("more than the archive takes at this pace")
            return
        self._waiting.append(_Kept(session, digest, data))
        self._waiting_bytes += len(data)
        self._wake.set()

    async def _run(self) -> None:
        while self._waiting or not self._closing:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                kept = self._waiting.popleft()
                self._waiting_bytes -= len(kept.data)
                try:
                    await asyncio.to_thread(self._write, kept)
                except ArchiveError as error:
                    self._drop(str(error))

    def _write(self, kept: _Kept) -> None:
        size = self._sizes.pop(kept.session, None)
        if size is None:
            size = self.archive.bytes_beside(kept.session, FOLDER)
        while len(self._sizes) >= SIZES_MOST:
            del self._sizes[next(iter(self._sizes))]
        if size + len(kept.data) > self.spec.session_bytes:
            self._sizes[kept.session] = size
            self._drop(f"a session may have {self.spec.session_bytes} bytes of them")
            return
        self.archive.put_beside(kept.session, FOLDER, name_of(kept.digest), kept.data)
        self._sizes[kept.session] = size + len(kept.data)
        self.counters.kept += 1

    def _drop(self, why: str) -> None:
        if not self.counters.dropped:
            log.warning("latents of a chunk are not kept: %s", why)
        self.counters.dropped += 1


def kept_latents(archive: Archive, session: str, digest: str) -> bytes | None:
    """The .npy file of a chunk; None where its latents were not kept. Raises `ArchiveError`."""
    return archive.beside(session, FOLDER, name_of(digest))


def name_of(digest: str) -> str:
    """A chunk that was decoded in many parts has a digest that is longer than names of files may be."""
    short = digest if len(digest) <= NAME_MOST else hashlib.sha256(digest.encode()).hexdigest()
    return f"{short}.npy"
