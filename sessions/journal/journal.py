"""The journal: events of all sessions, recorded at once and written to the hot store by a background task.

    record() -> buffer -> store -> archive      while the store takes entries
          |       +-----> spool file -> store   during an outage and until the file is drained, in order
          +-> ring (shared memory)              until it is stored: outlives a process that is killed

Recording never waits. Nothing is lost: what the store did not confirm is kept or spooled and sent again, and after an
outage its last seconds too, because a replica that takes over may lack what its primary confirmed. Nothing is doubled:
a number is taken once per session. Knows no session: an event and a session's name are all it gets.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from ...clock import Clock
from ..counters import JournalCounters
from .archiver import Archiver
from .entry import NOWHERE, Stamp, decode, encode
from .events import JournalEvent
from .latents import LatentsKeeper
from .ring import Ring
from .spool import Spool
from .store import HotStore, StoredEntry, StoreError

log = logging.getLogger("worldroom.journal")

TICK = 1e-6
"""Seconds between two entries at least, so that what is newer is later."""


@dataclass(frozen=True, slots=True)
class JournalSpec:
    """`flush_s`: longest wait of an entry, which the ring keeps meanwhile; each write costs a round trip.
    `batch`: entries per write; `buffer`: entries in memory before the disk. `again`: confirmed entries that are sent
    once more after an outage.

    `close_s`: longest wait for the store at the end.
    """

    flush_s: float = 0.25
    batch: int = 500
    buffer: int = 20_000
    again: int = 4_000
    retry_s: float = 0.5
    close_s: float = 5.0


class Journal:
    """Numbers, buffers and writes entries. Without a store it only buffers, at most `spec.buffer` (oldest go).

    `latents`: keeps those of chunks, None = nobody does.
    """

    def __init__(
        self,
        clock: Clock,
        spool: Spool | None = None,
        spec: JournalSpec | None = None,
        on_outage: Callable[[], None] | None = None,
        ring: Ring | None = None,
        archiver: Archiver | None = None,
        latents: LatentsKeeper | None = None,
    ) -> None:
        self.latents = latents
        self._clock = clock
        self._spool, self._ring, self._archiver = spool, ring, archiver
        self._spec = spec or JournalSpec()
        self._on_outage = on_outage
        self._numbers: dict[str, int] = {}
        self._at = 0.0
        self._buffer: deque[StoredEntry] = deque()
        self._writing: list[StoredEntry] = []
        self._confirmed: deque[StoredEntry] = deque(maxlen=self._spec.again)
        self._unsure = False
        """The store did not answer as it should: another one may answer next."""
        self._counters = JournalCounters()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @classmethod
    def open(
        cls,
        clock: Clock,
        store: HotStore,
        spool: Path,
        spec: JournalSpec | None = None,
        on_outage: Callable[[], None] | None = None,
        ring: Ring | None = None,
        archiver: Archiver | None = None,
        latents: LatentsKeeper | None = None,
    ) -> "Journal":
        """A journal that writes; what an earlier process left in spool and ring comes first. Needs a running loop."""
        journal = cls(clock, Spool(spool), spec, on_outage, ring, archiver, latents)
        if ring is not None:
            journal._buffer.extend(ring.left())
            journal._counters.recovered = len(journal._buffer)
        if archiver is not None:
            archiver.start()
        if latents is not None:
            latents.start()
        journal._wake.set()
        journal._task = asyncio.get_running_loop().create_task(journal._run(store), name="journal")
        return journal

    def record(self, session: str, event: JournalEvent, stamp: Stamp = NOWHERE) -> int:
        """Take an event; its number in the session. Never waits for the store."""
        number = self._numbers.get(session, 0) + 1
        self._numbers[session] = number
        self._at = max(self._at + TICK, self._clock.wall())  # a clock may be set back, a journal's time is not
        entry = StoredEntry(session, number, self._at, encode(event, stamp))
        self._buffer.append(entry)
        if self._ring is not None:
            self._ring.add(entry, chain(self._writing, self._buffer))
        self._counters.recorded += 1
        if len(self._buffer) > self._spec.buffer:
            self._overflow()
        self._wake.set()
        return number

    def number(self, session: str) -> int:
        """The number of the session's last event, 0 before the first."""
        return self._numbers.get(session, 0)

    def go_on(self, session: str, number: int) -> None:
        """A session that was journaled up to `number` by an earlier process."""
        self._numbers[session] = number

    def forget(self, session: str) -> None:
        """The session is closed: its number is not needed any more."""
        self._numbers.pop(session, None)

    def buffered(self, session: str) -> list[JournalEvent]:
        """Events of a session that are still in memory, oldest first."""
        entries = [*self._writing, *self._buffer]
        return [decode(session, e.number, e.at, e.body).event for e in entries if e.session == session]

    def counters(self) -> JournalCounters:
        now = replace(self._counters, buffered=len(self._buffer) + len(self._writing))
        if self._spool is not None:
            now.spool_bytes = self._spool.bytes_left
        if self._archiver is not None:
            done = self._archiver.counters
            now.archived, now.cut, now.archive_errors = done.archived, done.cut, done.errors
            now.hot_bytes = self._archiver.hot_bytes()
        if self.latents is not None:
            now.latents_kept, now.latents_dropped = self.latents.counters.kept, self.latents.counters.dropped
        return now

    async def close(self) -> None:
        """Write what is left, or spool it when the store is away; then archive the sessions that have ended.

        Takes at most `close_s`, whatever store and disk do; what could not be written by then is said.
        """
        self._closing.set()
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=self._spec.close_s)
            if not self._task.done():
                self._task.cancel()
                await asyncio.wait([self._task], timeout=self._spec.close_s)
            self._task = None
            self._say_what_is_lost()
        if self.latents is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.latents.close(), self._spec.close_s)
        if self._archiver is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._archiver.close(), self._spec.close_s)
        if self._ring is not None:
            self._ring.close()
        if self._spool is not None:
            self._spool.close()

    # ---- the background task ------------------------------------------------------------------------------------

    async def _run(self, store: HotStore) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._write_all(store)
            if self._closing.is_set() and (not self._buffer or self._counters.disk_errors):
                return  # what neither store nor disk take is not tried for ever
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._spec.flush_s):
                    await self._closing.wait()

    async def _write_all(self, store: HotStore) -> None:
        spool = self._spool
        assert spool is not None, "a writing journal has a spool"
        while True:
            if not spool.empty and not await self._drain(store, spool) and self._closing.is_set():
                await self._spool_buffer(spool)
                return
            if not self._buffer:
                self._clear_ring()
                return
            self._writing = self._next_batch()
            if await self._send(store, self._writing):
                self._writing = []
                continue
            await self._spool_buffer(spool)
            if spool.empty:
                if self._closing.is_set():
                    return
                await asyncio.sleep(self._spec.retry_s)

    async def _drain(self, store: HotStore, spool: Spool) -> bool:
        """Empty the spool into the store, trying again until it works; False when the journal closes meanwhile."""
        while not spool.empty:
            entries, offset = await asyncio.to_thread(spool.peek, self._spec.batch)
            if await self._send(store, entries):
                await asyncio.to_thread(spool.drain_to, offset)
                continue
            if self._closing.is_set():
                return False
            await asyncio.sleep(self._spec.retry_s)
            await self._spool_buffer(spool)
        return True

    async def _spool_buffer(self, spool: Spool) -> None:
        """Move everything that waits in memory to the spool, oldest first; what the disk refuses stays in memory."""
        while self._writing or self._buffer:
            if not self._writing:
                self._writing = self._next_batch()
            try:
                await asyncio.to_thread(spool.append, self._writing)
            except OSError as error:
                self._disk_refused(error)
                self._buffer.extendleft(reversed(self._writing))
                self._writing = []
                return
            self._counters.spooled += len(self._writing)
            self._writing = []
        self._clear_ring()

    def _clear_ring(self) -> None:
        """Everything recorded so far is in the store or in the spool."""
        if self._ring is not None:
            self._ring.clear()

    def _next_batch(self) -> list[StoredEntry]:
        return [self._buffer.popleft() for _ in range(min(self._spec.batch, len(self._buffer)))]

    async def _send(self, store: HotStore, entries: list[StoredEntry]) -> bool:
        counters = self._counters
        try:
            if self._archiver is not None and self._archiver.full:
                raise StoreError("journal: the archive is away and the store holds as much as it may")
            added = await self._append(store, entries)
        except StoreError as error:
            if not counters.away:
                log.warning("%s; spooling to disk until it is back", error)
                counters.away = True
                counters.outages += 1
            if self._on_outage is not None:
                self._on_outage()
            return False
        if counters.away:
            log.warning("journal: its store is back")
        counters.away = False
        counters.written += added
        counters.repeated += len(entries) - added
        self._confirmed.extend(entries)
        if self._archiver is not None:
            self._archiver.stored(entries)
        return True

    async def _append(self, store: HotStore, entries: list[StoredEntry]) -> int:
        unsure, self._unsure = self._unsure, True
        if unsure and self._confirmed:
            await store.append(self._confirmed)
        added = await store.append(entries)
        self._unsure = False
        return added

    def _overflow(self) -> None:
        """The store hangs and the buffer is full: bound the memory at once, on the disk.

        The batch in flight goes first, so the file keeps the order; what the store got twice it skips by number.
        """
        if self._spool is not None:
            try:
                self._spool.append([*self._writing, *self._buffer])
            except OSError as error:
                self._disk_refused(error)
            else:
                self._counters.spooled += len(self._buffer)
                self._buffer.clear()
        while len(self._buffer) > self._spec.buffer:
            self._buffer.popleft()
            self._counters.dropped += 1

    def _say_what_is_lost(self) -> None:
        left = len(self._buffer) + len(self._writing)
        if left and (self._ring is None or not self._ring.holds):
            self._counters.dropped += left
            log.error("journal: %d entries could be written nowhere and are lost", left)
        elif left:
            log.warning("journal: %d entries wait in shared memory for the next start", left)

    def _disk_refused(self, error: OSError) -> None:
        if self._counters.disk_errors == 0:
            log.error("journal: the spool cannot be written: %s; entries stay in memory", error)
        self._counters.disk_errors += 1
