"""A worker on a simulated device: cards without weights, steps that take what a data sheet says, black frames.

python -m worldroom.simulation.worker FD        a process, in real time: `worldroom serve --devices sim:h200,sim:h200`
VirtualWorker                                   on the edge's own loop, in virtual time, where it can be made to die
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..clock import Clock
from ..engine.caches.store import SnapshotFolder
from ..engine.weights.away import WeightsAway
from ..engine.worker import ipc
from ..engine.worker.devices import WorkerDevice
from ..engine.worker.main import WorkerParts, WorkerServer, main
from ..engine.worker.process import WorkerProcess
from ..models.contract.loaded import LoadedCard
from ..models.contract.recipe import RuntimeChoice
from .device import PLENTY, SimulatedDevice
from .encoder import BlankEncoder
from .prices import cost_by
from .sheets import priced

CLOSES_S = 0.2
"""Until an engine that does not close in order is left as it is."""


def simulated_parts(clock: Clock, boot: ipc.Boot) -> WorkerParts:
    """The device of the data sheet that its name says. Raises what `sheets.priced` raises."""
    sheet = priced(boot.cards, boot.device.sheet)
    cards = {prices.card.name: prices for prices in sheet.cards}
    device = SimulatedDevice(cost_by(cards), boot.device.name, total=sheet.memory_bytes or PLENTY)
    device.model = sheet.device

    def load(name: str, choice: RuntimeChoice | None, checkpoint: Path | None, options: bytes) -> LoadedCard:
        device.load(cards[name].bytes.weights)
        return cards[name].loaded()

    return WorkerParts(device, load, away=lambda spec, folder: WeightsAway(PLENTY, Path()), move=device.claim)


class MortalFolder(SnapshotFolder):
    """A folder that a worker leaves as it is when it dies, although its engine closes in order."""

    dead = False

    def forget(self, session: str) -> None:
        if not self.dead:
            super().forget(session)


class VirtualWorker(WorkerProcess):
    """A worker without a process and without a socket. What it says after it died is not heard."""

    def __init__(self, clock: Clock, hear: Callable[[ipc.ToEdge], None], device: WorkerDevice) -> None:
        super().__init__(clock, hear, device)
        self._server = WorkerServer(clock, self._parts, self._said, lambda code: self.die())
        self.simulated: SimulatedDevice | None = None
        self.loads: list[str] = []
        """Cards whose weights were loaded onto the device, as often as they were."""
        self._folder: MortalFolder | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._server.run())

    def send(self, message: ipc.ToWorker) -> None:
        if not self.ended.is_set():
            asyncio.get_running_loop().call_soon(self._server.take, message)

    def die(self) -> None:
        """As by kill -9."""
        if self._folder is not None:
            self._folder.dead = True
        self.ended.set()

    async def watch(self) -> None:
        await self.ended.wait()

    async def end(self) -> None:
        self.die()
        while self._running is not None and not self._running.done():
            self._running.cancel()  # again, where its engine waits for a device that is lost
            await asyncio.wait([self._running], timeout=CLOSES_S)

    async def stop(self) -> None:
        await self.end()

    def _parts(self, clock: Clock, boot: ipc.Boot) -> WorkerParts:
        parts = simulated_parts(clock, boot)
        assert isinstance(parts.device, SimulatedDevice)
        self.simulated = parts.device

        def load(name: str, choice: RuntimeChoice | None, checkpoint: Path | None, options: bytes) -> LoadedCard:
            self.loads.append(name)
            return parts.load(name, choice, checkpoint, options)

        return replace(parts, load=load, encoder=BlankEncoder, store=self._stored)

    def _stored(self, boot: ipc.Boot) -> SnapshotFolder:
        self._folder = MortalFolder(Path(boot.folder), Path(boot.disk) if boot.disk else None)
        return self._folder

    def _said(self, message: ipc.ToEdge) -> None:
        asyncio.get_running_loop().call_soon(self._heard_by_edge, message)

    def _heard_by_edge(self, message: ipc.ToEdge) -> None:
        if not self.ended.is_set():
            self._take(message)


if __name__ == "__main__":
    main(simulated_parts)
