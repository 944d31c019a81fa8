"""Faults of the journal's store under rooms that play: what is lost, what is doubled, which frames are late by it.

rooms play -> [calm: late?] -> fault -> [fault: late?] -> mended -> journal settles -> read back, number by number
"""

import asyncio
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....clock import SystemClock
from ..stage import SilentViewer, seats
from .amounts import Amounts
from .valkeys import Valkey, sentinel

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from ....engine.worker.client import WorkerClient
    from ....sessions.journal.journal import Journal

ROOMS = 4
SETTLE_S = 30.0
TIMEOUT_S = 0.5


class FaultReport(msgspec.Struct, frozen=True):
    """`late_calm`, `late_fault`: chunks that moved the playout clock, in as many seconds before and during the fault.
    `spooled`: entries that went to the disk meanwhile."""

    fault: str
    rooms: int
    recorded: int
    lost: int
    doubled: int
    spooled: int
    late_calm: int
    late_fault: int


@dataclass(slots=True)
class _Ground:
    """One server in whose place a fault happens; `other`: its replica."""

    server: Valkey
    other: Valkey | None
    client: "Redis"
    spool: Path


async def measure_faults(amounts: Amounts) -> tuple[FaultReport, ...]:
    """Raises `WorkerFailed`."""
    from ....engine.spec import EngineSpec
    from ....engine.worker.client import WorkerClient
    from ....engine.worker.spec import WorkerSpec

    worker = WorkerClient(WorkerSpec(("toy",), None, EngineSpec(slots=ROOMS)), SystemClock())
    await worker.start()
    try:
        return tuple([await _measured(worker, name, fault, amounts.seconds) for name, fault in FAULTS.items()])
    finally:
        await worker.close()


async def _measured(worker: "WorkerClient", name: str, fault: "Fault", seconds: float) -> FaultReport:
    from ....sessions.journal.history import Cut, History
    from ....sessions.journal.journal import Journal, JournalSpec
    from ....sessions.journal.redis_url import connect
    from ....sessions.journal.streams import Streams
    from ....sessions.rooms.opener import RoomsSpec
    from ....sessions.rooms.rooms import Rooms

    clock = SystemClock()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="worldroom-bench-")))
        server, other, url = _servers(stack, folder, replicated=name == "failed over")
        client = await connect(url, TIMEOUT_S)
        ground = _Ground(server, other, client, folder / "spool")
        store = Streams(client, 3600)
        journal = Journal.open(clock, store, ground.spool, JournalSpec(close_s=SETTLE_S))
        rooms = Rooms(worker, journal, clock, RoomsSpec(card="toy"))
        viewers = [viewer async for viewer in seats(rooms, ROOMS) if isinstance(viewer, SilentViewer)]
        await asyncio.sleep(2.0)
        late = [rooms.counters().chunks_late]
        await asyncio.sleep(seconds)
        late.append(rooms.counters().chunks_late)
        async with fault(ground):
            await asyncio.sleep(seconds)
            late.append(rooms.counters().chunks_late)
        sessions = [viewer.session for viewer in viewers]
        wanted = {session: journal.number(session) for session in sessions}
        await _settled(journal)
        await rooms.close()
        await journal.close()
        lost = doubled = 0
        for session in sessions:
            rows = [row async for row in History(store, None).rows(session)]
            numbers = Counter([row.number for row in rows if not isinstance(row, Cut)])
            lost += sum(number not in numbers for number in range(1, wanted[session] + 1))
            doubled += sum(count - 1 for count in numbers.values())
        counters = journal.counters()
        await store.close()
    calm, during = late[1] - late[0], late[2] - late[1]
    return FaultReport(name, len(viewers), sum(wanted.values()), lost, doubled, counters.spooled, calm, during)


def _servers(stack: AsyncExitStack, folder: Path, replicated: bool) -> tuple[Valkey, Valkey | None, str]:
    server = stack.enter_context(Valkey(folder / "one"))
    if not replicated:
        return server, None, f"redis://127.0.0.1:{server.port}/0"
    other = stack.enter_context(Valkey(folder / "two", "--replicaof", f"127.0.0.1 {server.port}"))
    at = stack.enter_context(sentinel(folder / "sentinel.conf", server.port))
    return server, other, f"redis+sentinel://127.0.0.1:{at}/worlds"


async def _settled(journal: "Journal") -> None:
    async with asyncio.timeout(SETTLE_S):
        while (now := journal.counters()).spool_bytes or now.away:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)


# ---- the faults ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _none(ground: _Ground) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def _killed(ground: _Ground) -> AsyncIterator[None]:
    ground.server.signal(signal.SIGKILL)
    yield
    await asyncio.to_thread(ground.server.start)


@asynccontextmanager
async def _restarted(ground: _Ground) -> AsyncIterator[None]:
    ground.server.signal(signal.SIGTERM)
    await asyncio.to_thread(ground.server.ended)
    await asyncio.to_thread(ground.server.start)
    yield


@asynccontextmanager
async def _frozen(ground: _Ground) -> AsyncIterator[None]:
    ground.server.signal(signal.SIGSTOP)
    yield
    ground.server.signal(signal.SIGCONT)


@asynccontextmanager
async def _slow(ground: _Ground) -> AsyncIterator[None]:
    """Every command waits up to .3 s."""

    async def pausing() -> None:
        while True:
            await ground.client.client_pause(300)
            await asyncio.sleep(0.35)

    task = asyncio.create_task(pausing())
    yield
    task.cancel()


@asynccontextmanager
async def _full(ground: _Ground) -> AsyncIterator[None]:
    await ground.client.config_set("maxmemory", 1)
    yield
    await ground.client.config_set("maxmemory", 0)


@asynccontextmanager
async def _failed_over(ground: _Ground) -> AsyncIterator[None]:
    ground.server.signal(signal.SIGKILL)
    yield


@asynccontextmanager
async def _disk_full(ground: _Ground) -> AsyncIterator[None]:
    """Redis frozen and a spool that takes nothing: what happens meanwhile waits in memory."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ground.server.signal(signal.SIGSTOP)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
        ground.server.signal(signal.SIGCONT)


Fault = Callable[[_Ground], AbstractAsyncContextManager[None]]
FAULTS: dict[str, Fault] = {
    "none": _none,
    "killed": _killed,
    "restarted": _restarted,
    "frozen": _frozen,
    "slow": _slow,
    "full": _full,
    "failed over": _failed_over,
    "disk full, Redis frozen": _disk_full,
}
