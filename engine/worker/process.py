"""One worker process as the edge holds it: started on a socket pair, watched, and ended for good.

A child dies with the edge, however the edge ends: the kernel kills it (PR_SET_PDEATHSIG) and its socket closes. Knows
no sessions; `client.py` says what a death means.
"""

import asyncio
import contextlib
import logging
import socket
import subprocess
import sys
from collections.abc import Callable

from ...clock import Clock
from . import ipc, watchdog
from .devices import WorkerDevice

log = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", "worldroom.engine.worker.main")
LOOK = 0.1
GRACE = 5.0
BACKOFF, BACKOFF_MAX = 0.5, 30.0


class WorkerFailed(RuntimeError):
    """The worker said that it cannot serve. `theirs`: the person who started the server can put it right."""

    def __init__(self, detail: str, theirs: bool) -> None:
        super().__init__(detail)
        self.theirs = theirs


class WorkerProcess:
    """`hear` gets what the worker says. `ended` is set when it is gone: exited, killed or given up as hanging."""

    def __init__(
        self,
        clock: Clock,
        hear: Callable[[ipc.ToEdge], None],
        device: WorkerDevice,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self._clock, self._hear, self.device, self._command = clock, hear, device, command
        self._process: subprocess.Popen[bytes] | None = None
        self._link: ipc.IpcLink[ipc.ToEdge] | None = None
        self._heard = clock.now()
        self._early: watchdog.ProcStat | None = None
        self._busy = self._patience = 0.0
        self._watching = False
        self.ended = asyncio.Event()

    @property
    def pid(self) -> int:
        assert self._process is not None, "the child is started"
        return self._process.pid

    async def start(self) -> None:
        """Run the command with its end of the pair as last argument; it loads what every worker needs and waits."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = [*self._command, str(theirs.fileno())]
            self._process = _spawn(command, theirs.fileno(), self.device.environment())
        self._link = await ipc.edge_end(ours, self._take, self.ended.set)

    def send(self, message: ipc.ToWorker) -> None:
        if self._link is not None:
            self._link.send(message)

    async def watch(self) -> None:
        """Return when the child is gone. One that hangs is given up in less than a second, once it was ready."""
        while not self.ended.is_set():
            looked = self._clock.now()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), LOOK)
            now = self._clock.now()
            # A look that comes late says that this process was held up, not that the child was silent.
            if now - looked < 2 * LOOK and self._watching and self._hangs(now):
                why = watchdog.said(now - self._heard, self._busy, self._patience)
                log.error("worker %d hangs: %s; it is killed", self.pid, why)
                return

    async def end(self) -> None:
        """Kill the process if it still lives, and reap it."""
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        if self._link is not None:
            self._link.close()

    async def stop(self) -> None:
        """Let it end by itself, for a while."""
        self.send(ipc.Stop())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), GRACE)
        await self.end()

    def _take(self, message: ipc.ToEdge) -> None:
        self._heard = self._clock.now()
        if isinstance(message, ipc.Heartbeat):
            self._watching = self._watching or message.ready
            self._busy, self._patience = message.busy, message.patience
        self._hear(message)

    def _hangs(self, now: float) -> bool:
        silence = max(now - self._heard, self._busy if self._busy > self._patience else 0.0)
        if silence < 2 * LOOK:
            self._early = None
            return False
        sign = watchdog.proc_stat_of(self.pid)
        if self._early is None:
            self._early = sign
        return watchdog.hangs(silence, self._early, sign)


class StandbyWorker:
    """Where the next worker comes from. `after`: seconds of service after which it is started, up to its `Boot`, so
    that whoever takes over has loaded the program already, and what `cards` need; None = only when it is needed.
    One that cannot be started is tried again, each time after a longer while. `failed`: starts that failed since the
    last one that did not.
    """

    def __init__(self, make: Callable[[], WorkerProcess], after: float | None, cards: tuple[str, ...]) -> None:
        self._make, self._after, self._cards = make, after, cards
        self._timer: asyncio.TimerHandle | None = None
        self._spare: asyncio.Task[WorkerProcess] | None = None
        self.failed = 0

    @property
    def process(self) -> WorkerProcess | None:
        """The spare process, once it is started."""
        return self._spare.result() if self._spare is not None and self._spare.done() else None

    def prepare(self) -> None:
        """The present worker serves."""
        if self._after is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._after, self._recruit)

    async def first(self) -> WorkerProcess:
        """Raises OSError when it cannot be started."""
        child = self._make()
        await child.start()
        return child

    async def next(self) -> WorkerProcess:
        """A started child that waits for its `Boot`."""
        spare = await self._taken()
        if spare is not None and spare.ended.is_set():
            await spare.end()
            spare = None
        return spare or await self._start()

    async def end(self) -> None:
        spare = await self._taken()
        if spare is not None:
            await spare.end()

    def _recruit(self) -> None:
        self._spare = asyncio.get_running_loop().create_task(self._prepared())

    async def _taken(self) -> WorkerProcess | None:
        """The spare, if there is one; none will be started until somebody serves again."""
        if self._timer is not None:
            self._timer.cancel()
        spare, self._spare, self._timer = self._spare, None, None
        if spare is not None and self.failed:
            spare.cancel()  # it waits for its next try, and who asks does not
            return None
        return None if spare is None else await spare

    async def _prepared(self) -> WorkerProcess:
        child = await self._start()
        child.send(ipc.Prepare(self._cards))
        return child

    async def _start(self) -> WorkerProcess:
        while True:
            try:
                child = await self.first()
            except OSError as problem:
                wait = min(BACKOFF_MAX, BACKOFF * 2**self.failed)
                self.failed += 1
                log.error("a worker process cannot be started (%s); tried again in %.1f s", problem.strerror, wait)
                await asyncio.sleep(wait)
            else:
                self.failed = 0
                return child


def _spawn(command: list[str], descriptor: int, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """In a session of its own: Ctrl-C on the terminal reaches the edge alone, which then stops the worker."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=(descriptor,), start_new_session=True, env=environment
    )
