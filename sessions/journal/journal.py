"""The journal: events of all sessions, recorded at once and written to Redis by a background task.

    record() -> buffer -> Redis                  while Redis takes entries
                  +-----> spool file -> Redis    during an outage and until the file is drained, in order

Recording never waits. Nothing is lost: what Redis did not confirm is kept or spooled and sent again. Nothing is
doubled: an entry's number is its ID in the stream. Knows no session: an event and a session's name are all it gets.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ...clock import Clock
from .events import JournalEvent
from .spool import Spool, SpoolEntry
from .streams import StreamError, Streams

log = logging.getLogger("worldroom.journal")


@dataclass(frozen=True, slots=True)
class JournalSpec:
    """`flush_s`: longest wait of an entry; `batch`: entries per write; `buffer`: entries in memory before the disk."""

    flush_s: float = 0.05
    batch: int = 500
    buffer: int = 20_000
    retry_s: float = 0.5


@dataclass(slots=True)
class JournalCounters:
    """Entries. `written`: new in Redis, drained ones too. `repeated`: sent again, Redis had them. `dropped`: lost."""

    recorded: int = 0
    written: int = 0
    repeated: int = 0
    spooled: int = 0
    dropped: int = 0
    buffered: int = 0
    spool_bytes: int = 0
    outages: int = 0
    disk_errors: int = 0
    away: bool = False


class Journal:
    """Numbers, buffers and writes entries. Without `streams` it only buffers, at most `spec.buffer` (oldest go)."""

    def __init__(
        self,
        clock: Clock,
        streams: Streams | None = None,
        spool: Spool | None = None,
        spec: JournalSpec | None = None,
        on_outage: Callable[[], None] | None = None,
    ) -> None:
        self._clock = clock
        self._streams = streams
        self._spool = spool
        self._spec = spec or JournalSpec()
        self._on_outage = on_outage
        self._numbers: dict[str, int] = {}
        self._buffer: deque[SpoolEntry] = deque()
        self._writing: list[SpoolEntry] = []
        self._counters = JournalCounters()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @classmethod
    def open(
        cls,
        clock: Clock,
        streams: Streams,
        spool: Path,
        spec: JournalSpec | None = None,
        on_outage: Callable[[], None] | None = None,
    ) -> "Journal":
        """A journal that writes; a spool left by an earlier process is drained first. Needs a running loop."""
        journal = cls(clock, streams, Spool(spool), spec, on_outage)
        journal._wake.set()
        journal._task = asyncio.get_running_loop().create_task(journal._run(streams), name="journal")
        return journal

    def record(self, session: str, event: JournalEvent) -> int:
        """Take an event; its number in the session. Never waits for Redis."""
        number = self._numbers.get(session, 0) + 1
        self._numbers[session] = number
        self._buffer.append(SpoolEntry(session, number, self._clock.wall(), msgspec.json.encode(event)))
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
        return [msgspec.json.decode(e.body, type=JournalEvent) for e in entries if e.session == session]

    def counters(self) -> JournalCounters:
        spool_bytes = self._spool.bytes_left if self._spool else 0
        return replace(self._counters, buffered=len(self._buffer) + len(self._writing), spool_bytes=spool_bytes)

    async def close(self) -> None:
        """Write what is left, or spool it when Redis is away."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
            self._task = None
        if self._spool is not None:
            self._spool.close()

    # ---- the background task ------------------------------------------------------------------------------------

    async def _run(self, streams: Streams) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._write_all(streams)
            if self._closing and not self._buffer:
                return
            if not self._closing:
                await asyncio.sleep(self._spec.flush_s)

    async def _write_all(self, streams: Streams) -> None:
        spool = self._spool
        assert spool is not None, "a writing journal has a spool"
        while True:
            if not spool.empty and not await self._drain(streams, spool) and self._closing:
                await self._spool_buffer(spool)
                return
            if not self._buffer:
                return
            self._writing = self._next_batch()
            if await self._send(streams, self._writing):
                self._writing = []
                continue
            await self._spool_buffer(spool)
            if spool.empty:
                await asyncio.sleep(self._spec.retry_s)

    async def _drain(self, streams: Streams, spool: Spool) -> bool:
        """Empty the spool into Redis, trying again until it works; False when the journal closes meanwhile."""
        while not spool.empty:
            entries, offset = await asyncio.to_thread(spool.peek, self._spec.batch)
            if await self._send(streams, entries):
                await asyncio.to_thread(spool.drain_to, offset)
                continue
            if self._closing:
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

    def _next_batch(self) -> list[SpoolEntry]:
        return [self._buffer.popleft() for _ in range(min(self._spec.batch, len(self._buffer)))]

    async def _send(self, streams: Streams, entries: list[SpoolEntry]) -> bool:
        counters = self._counters
        try:
            added = await streams.append(entries)
        except StreamError as error:
            if not counters.away:
                log.warning("%s; spooling to disk until it is back", error)
                counters.away = True
                counters.outages += 1
            if self._on_outage is not None:
                self._on_outage()
            return False
        if counters.away:
            log.warning("journal: Redis is back")
        counters.away = False
        counters.written += added
        counters.repeated += len(entries) - added
        return True

    def _overflow(self) -> None:
        """Redis hangs and the buffer is full: bound the memory at once, on the disk.

        The batch in flight goes first, so the file keeps the order; what Redis got twice it skips by number.
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

    def _disk_refused(self, error: OSError) -> None:
        if self._counters.disk_errors == 0:
            log.error("journal: the spool cannot be written: %s; entries stay in memory", error)
        self._counters.disk_errors += 1
