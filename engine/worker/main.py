"""The worker process: today's `Engine` on its own loop, behind a socket. `python -m worldroom.engine.worker.main FD`.

It dies with the edge: by PR_SET_PDEATHSIG on Linux, and everywhere when the socket closes. Everything it says goes
through `link`; it never reads a command line option, a file of settings or the network.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import selectors
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...clock import Clock, SystemClock
from ...models import catalog
from ...models.contract.loaded import LoadedCard
from ...models.contract.recipe import RuntimeChoice
from ...models.holding import DoesNotFit, Memory, check, fit_together
from .. import api
from ..caches.store import SnapshotFolder
from ..caches.weights_io import WeightsRow, move
from ..cost_store import CostStore
from ..device.device import Device, ThreadDevice
from ..engine import Engine
from ..output.encode import H264Encoder
from ..spec import EngineSpec
from ..weights.away import WeightsAway, put_away
from ..weights.shares import away_for
from . import ipc
from .devices import WorkerDevice
from .spec import store_of

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
BEAT = 0.1

Load = Callable[[str, RuntimeChoice | None, Path | None, bytes], LoadedCard]


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """What a worker is made of: on what cards run, how they are loaded there, what makes packets of frames, what keeps
    checkpoints in the edge's folders, and where weights are that left the device, and how they leave.
    """

    device: Device
    load: Load = catalog.load
    encoder: type[H264Encoder] = H264Encoder
    store: Callable[[ipc.Boot], SnapshotFolder] = store_of
    away: Callable[[EngineSpec, Path | None], WeightsAway] = away_for
    move: Callable[[LoadedCard, WeightsRow], None] = move


MakeParts = Callable[[Clock, ipc.Boot], WorkerParts]


def own_parts(clock: Clock, boot: ipc.Boot) -> WorkerParts:
    """The device that this process was pinned to."""
    return WorkerParts(ThreadDevice(clock, boot.device.name, boot.device.sharers))


class WorkerServer:
    """Serves one edge until that says stop or is gone. `say`: to the edge; what that says goes to `take`. `exit` ends
    its process.
    """

    def __init__(
        self,
        clock: Clock,
        parts: MakeParts,
        say: Callable[[ipc.ToEdge], None],
        exit: Callable[[int], object] = os._exit,
    ) -> None:
        self._clock, self._parts, self._say, self._exit = clock, parts, say, exit
        self._boot: asyncio.Future[ipc.Boot] = asyncio.get_running_loop().create_future()
        self._engine: Engine | None = None
        self._stop, self._gone = asyncio.Event(), asyncio.Event()
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until it is told to stop, or cannot serve."""
        boot = await self._boot
        beating = asyncio.create_task(self._beat())
        beating.add_done_callback(_end_without_heart)
        try:
            await self._serve(boot)
        except (*catalog.REFUSALS, DoesNotFit) as problem:
            self._say(ipc.Broken(str(problem), theirs=True))
        except Exception as problem:
            log.exception("the worker cannot serve")
            self._say(ipc.Broken(f"{type(problem).__name__}: {problem}", theirs=_theirs(problem)))
        finally:
            beating.cancel()

    async def gone(self) -> None:
        """The edge has hung up."""
        await self._gone.wait()

    async def _serve(self, boot: ipc.Boot) -> None:
        parts = self._parts(self._clock, boot)
        away = parts.away(boot.spec, Path(boot.disk) if boot.disk else None)
        together = await asyncio.to_thread(check_fit, boot, parts.device)
        published = {card: Path(place) for card, place in boot.checkpoints.items()}
        loaded: list[LoadedCard] = []
        for card in boot.cards:
            if loaded and not together:
                await asyncio.to_thread(put_away, loaded[-1], away, parts.move)
            options = boot.options.get(card, b"")
            loaded.append(await asyncio.to_thread(parts.load, card, boot.choice, published.get(card), options))
        check_device(boot.device)
        self._folder = parts.store(boot)
        prices = CostStore(Path(boot.prices)) if boot.prices else None
        self._engine = engine = Engine(
            tuple(loaded),
            self._clock,
            boot.spec,
            parts.device,
            parts.encoder,
            store=self._folder,
            checkpointed=self._checkpointed,
            prices=prices,
            adapters=Path(boot.adapters) if boot.adapters else None,
            away=away,
        )
        try:
            await engine.start()
            await self._stop.wait()
        finally:
            await engine.close()

    async def _beat(self) -> None:
        told = 0
        while True:
            engine = self._engine
            if engine is None:
                self._say(ipc.Heartbeat(False, (), (), 0.0, 0.0))
            else:
                if (problem := engine.unsound) is not None:
                    log.critical("nothing in this worker can be trusted, so it ends: %s", problem)
                    self._exit(1)  # sessions go on from what they were before
                    return
                busy, patience = engine.busy
                steps, told = engine.history.since(told), engine.history.count
                self._say(
                    ipc.Heartbeat(
                        engine.ready, engine.cards(), engine.capacity(), busy, patience, engine.sessions(), steps
                    )
                )
            await asyncio.sleep(BEAT)

    def take(self, message: ipc.ToWorker) -> None:
        match message:
            case ipc.Prepare():
                catalog.prepare(message.cards)
            case ipc.Boot():
                self._boot.set_result(message)
            case ipc.Request():
                task = asyncio.get_running_loop().create_task(self._answer(message))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
            case ipc.Stop():
                self._stop.set()
                if self._engine is None or not self._engine.ready:
                    os._exit(0)  # nobody is in yet, and nobody waits for the warm-up
            case _:
                # Not at once: the session may be one whose opening was read just before, and its task begins first.
                if self._engine is not None:
                    asyncio.get_running_loop().call_soon(self._engine.carry_out, message)

    async def _answer(self, request: ipc.Request) -> None:
        engine, session, asked = self._engine, request.session, request.asked
        answer: api.Opened | api.Forked | api.Refused | None
        if engine is None:
            answer = api.Refused(session, api.RefusalReason.NOT_READY, "the engine is still loading", 0, 1.0)
        elif isinstance(asked, api.Open):
            answer = await engine.open(asked, self._say)
        elif isinstance(asked, api.ForkSession):
            answer = await engine.fork(asked, self._say, lambda forked: self._say(ipc.Reply(request.id, forked)))
        else:
            snapshot = self._folder.get(session)  # at once: what is posted next finds the session
            answer = await engine.restore(asked, snapshot, self._say)
        if answer is not None:
            self._say(ipc.Reply(request.id, answer))

    def _checkpointed(self, session: str, chunk: int, epoch: int) -> None:
        self._say(ipc.CheckpointKept(session, chunk, epoch))

    def lost(self) -> None:
        """Nobody is left to serve: a worker without its edge keeps nothing and closes nothing in order."""
        self._gone.set()
        if not self._stop.is_set():
            if self._boot.done():
                shutil.rmtree(self._boot.result().folder, ignore_errors=True)
            os._exit(1)


def check_fit(boot: ipc.Boot, device: Device) -> bool:
    """Raise `DoesNotFit` for a card of published weights of which the device cannot hold one session, before they are
    read. False where each fits and not all of them together.
    """
    catalog.prepare(boot.cards)
    counted, memory = [], device.memory()
    for name in set(boot.cards) & set(catalog.names()):
        options = boot.options.get(name, b"")
        footprint, card = catalog.counted(name, options), catalog.card(name, options)
        if footprint is not None:
            choice, total = boot.choice or card.recipe.default, boot.spec.memory or memory.total
            counted.append(check(card, footprint, choice.precision, total, boot.spec.memory or memory.free))
    free = Memory(boot.spec.memory or memory.total, boot.spec.memory or memory.free)
    return fit_together(free, counted, boot.spec.max_rows)


def _end_without_heart(beating: "asyncio.Task[None]") -> None:
    """A worker that cannot say that it lives is of no use; the edge starts another one."""
    if not beating.cancelled() and (problem := beating.exception()) is not None:
        log.critical("the worker's heart stopped, so it ends", exc_info=problem)
        os._exit(1)


def _theirs(problem: Exception) -> bool:
    from ...models.shared.compiled import NoCompiler
    from ...models.weights import WeightsError

    return isinstance(problem, WeightsError | ImportError | NoCompiler)


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends; where it cannot, the closed socket tells."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def check_device(device: WorkerDevice) -> None:
    """Raise `DoesNotFit` where a worker of a GPU would compute on the CPU."""
    torch = sys.modules.get("torch")
    if device.gpu and torch is not None and not torch.cuda.is_available():
        raise DoesNotFit(f"{device.name} cannot be used: torch {torch.__version__} sees no GPU here (`nvidia-smi`)")


def main(parts: MakeParts = own_parts) -> None:
    """Serve on the socket whose descriptor is the last argument."""
    die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    end = socket.socket(fileno=int(sys.argv[-1]))

    async def serve() -> None:
        link: ipc.IpcLink[ipc.ToWorker]
        server = WorkerServer(SystemClock(), parts, lambda message: link.send(message))
        link = await ipc.worker_end(end, server.take, server.lost)
        try:
            await server.run()
        finally:
            link.close()
        await server.gone()

    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=punctual_loop) as runner:
        runner.run(serve())


def punctual_loop() -> asyncio.AbstractEventLoop:
    """A loop whose timers are exact to microseconds: epoll rounds up to whole milliseconds. It has few descriptors."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


if __name__ == "__main__":
    main()
