"""A worker in this process, in virtual time: the edge's client as it is, an engine on a simulated device behind it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path

from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.cost_store import CostStore
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker import ipc
from worldroom.engine.worker.client import WorkerClient
from worldroom.engine.worker.spec import WorkerSpec
from worldroom.models.contract.loaded import LoadedCard
from worldroom.simulation.encoder import BlankEncoder
from worldroom.tests.fake_engine import FakeDevice, steady
from worldroom.tests.mortal_store import MortalStore

BEAT = 0.1


class LocalProcess:
    """What `WorkerClient` takes for a process. `kill` ends it as SIGKILL does: in the middle of everything."""

    pid = 0

    def __init__(self, hear: Callable[[ipc.ToEdge], None], card: LoadedCard) -> None:
        self._hear, self._card = hear, card
        self._ended, self._dead = asyncio.Event(), False
        self._engine: Engine | None = None
        self._store: MortalStore | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def kill(self) -> None:
        self._dead = True
        if self._store is not None:
            self._store.dead = True
        self._ended.set()

    def send(self, message: ipc.ToWorker) -> None:
        asyncio.get_running_loop().call_soon(self._take, message)

    async def watch(self) -> None:
        await self._ended.wait()

    async def end(self) -> None:
        self.kill()
        if self._engine is not None:
            await self._engine.close()

    async def stop(self) -> None:
        await self.end()

    def _say(self, message: ipc.ToEdge) -> None:
        if not self._dead:
            asyncio.get_running_loop().call_soon(lambda: None if self._dead else self._hear(message))

    def _take(self, message: ipc.ToWorker) -> None:
        if self._dead:
            return
        match message:
            case ipc.Boot():
                self._do(self._serve(message))
            case ipc.Request():
                self._do(self._answer(message))
            case ipc.Prepare() | ipc.Stop():
                pass
            case _:
                assert self._engine is not None
                asyncio.get_running_loop().call_soon(self._engine.carry_out, message)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, boot: ipc.Boot) -> None:
        self._store = MortalStore(Path(boot.folder), Path(boot.disk) if boot.disk else None)
        self._engine = engine = Engine(
            (self._card,),
            LoopClock(asyncio.get_running_loop()),
            boot.spec,
            FakeDevice(steady(0.003)),
            BlankEncoder,
            store=self._store,
            checkpointed=lambda session, chunk, epoch: self._say(ipc.CheckpointKept(session, chunk, epoch)),
            prices=CostStore(Path(boot.prices)) if boot.prices else None,
        )
        await engine.start()
        while not self._dead:
            self._say(ipc.Heartbeat(True, engine.cards(), engine.capacity(), 0.0, 0.0, engine.sessions()))
            await asyncio.sleep(BEAT)

    async def _answer(self, request: ipc.Request) -> None:
        engine, store, asked = self._engine, self._store, request.asked
        assert engine is not None and store is not None
        answer: api.Opened | api.Forked | api.Refused | None
        if isinstance(asked, api.Open):
            answer = await engine.open(asked, self._say)
        elif isinstance(asked, api.ForkSession):
            answer = await engine.fork(asked, self._say, lambda forked: self._say(ipc.Reply(request.id, forked)))
        else:
            answer = await engine.restore(asked, store.get(request.session), self._say)
        if answer is not None:
            self._say(ipc.Reply(request.id, answer))


class LocalStandby:
    """Where the client's next worker comes from: it is there at once, as after a prepared start."""

    failed = 0

    def __init__(self, hear: Callable[[ipc.ToEdge], None], card: LoadedCard) -> None:
        self._hear, self._card = hear, card
        self.processes: list[LocalProcess] = []

    async def first(self) -> LocalProcess:
        self.processes.append(LocalProcess(self._hear, self._card))
        return self.processes[-1]

    async def next(self) -> LocalProcess:
        await asyncio.sleep(0.2)
        return await self.first()

    def prepare(self) -> None:
        pass

    async def end(self) -> None:
        pass


class LocalClient(WorkerClient):
    """A started or startable client. `kill`: the worker dies, and another one takes over. `prices`: where they are kept
    from one start to the next.
    """

    def __init__(
        self,
        card: LoadedCard,
        spec: EngineSpec | None = None,
        disk: Path | None = None,
        prices: Path | None = None,
    ) -> None:
        serving = WorkerSpec((card.card.name,), None, spec or EngineSpec(), disk, prices=prices)
        super().__init__(serving, LoopClock(asyncio.get_running_loop()))
        self.local = LocalStandby(self.heard, card)
        self.standby = self.local  # type: ignore[assignment]

    def heard(self, message: ipc.ToEdge) -> None:
        self._take(message)

    def kill(self) -> None:
        self.local.processes[-1].kill()


def relabelled(card: LoadedCard, weights: str) -> LoadedCard:
    """The same card as if it had come from other weight files."""
    return replace(card, weights=weights)


async def ready(client: LocalClient) -> LocalClient:
    await client.start()
    await asyncio.sleep(2 * BEAT)
    return client
