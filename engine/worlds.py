"""Several worlds of one card, each a chunk further with every call: what trains on worlds steps them together.

The driver, queue and batches of sessions, in the background class; no playout clock and no encoder.
"""

import asyncio
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..clock import Clock
from ..models.contract.conditions import Conditions, PromptShare
from ..models.contract.loaded import LoadedCard
from .api import LatencyClass, Open
from .cancel import CancelScope
from .card import CardRuntime
from .device.device import Device
from .device.dispatch import Dispatcher
from .scheduling.costs import Costs
from .scheduling.ticket import Rules
from .session.chunk import EngineChunk
from .session.driver import ChunkDriver
from .session.world import SessionWorld


class Worlds:
    """`count` of them on a device of their own. To be used from one event loop; `close` ends what runs."""

    def __init__(self, loaded: LoadedCard, device: Device, clock: Clock, count: int, steps: int | None = None) -> None:
        self._served, self._device, self._clock = CardRuntime.with_slots(loaded, count), device, clock
        self._dispatcher = Dispatcher(device, Costs(), clock, Rules(count, 0.0, 0), lambda: math.inf)
        self._scope = CancelScope()
        self._features: dict[str, object] = {}
        self._worlds: list[SessionWorld] = []
        self._drivers: list[ChunkDriver] = []
        self._count, self._steps = count, steps
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        served, loaded = self._served, self._served.loaded
        await self._device.allocate(loaded, self._count)
        self._serving = asyncio.create_task(self._dispatcher.serve())
        for number in range(self._count):
            opening = Open(f"world-{number}", loaded.card.name, 0, LatencyClass.BACKGROUND, steps=self._steps)
            world = SessionWorld(served, opening)
            driver = ChunkDriver(
                world, self._dispatcher, LatencyClass.BACKGROUND, self._scope, lambda key: self._features[key]
            )
            self._worlds.append(world)
            self._drivers.append(driver)
        # Rows are put together by their prices, so each kind of step is measured alone first.
        rest = tuple(0.0 for _ in loaded.card.controls)
        await self.step([0], [rest], [next(iter(loaded.card.suggestions), "")])

    async def begin(self, number: int, seed: int) -> None:
        """That world begins anew: the same seed, prompts and actions make the same frames."""
        world = self._worlds[number]
        world.begin_anew(world.epoch + 1, seed)
        world.number = 0

    async def step(
        self, numbers: Sequence[int], actions: Sequence[tuple[float, ...]], prompts: Sequence[str]
    ) -> list[npt.NDArray[np.uint8]]:
        """One chunk of each of these worlds, in one batch where the card allows it: frames [F, H, W, C] of each.

        `actions`: a value per control. Raises what a step raises.
        """
        for prompt in dict.fromkeys(prompts):
            await self._encode(prompt)
        chunks = [
            self._drivers[number].drive(self._chunk(number, controls, prompt))
            for number, controls, prompt in zip(numbers, actions, prompts, strict=True)
        ]
        return [np.asarray(outcome.frames) for outcome in await asyncio.gather(*chunks)]

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        for world in self._worlds:
            world.leave_slot()
        await self._device.close()

    def _chunk(self, number: int, controls: tuple[float, ...], prompt: str) -> EngineChunk:
        shares = (PromptShare(self._served.prompt_key(prompt), 1.0),)
        conditions = Conditions(0, controls, (0.0, 0.0), shares, 1, 0)
        return EngineChunk(self._worlds[number].number, conditions, self._scope, self._clock.now())

    async def _encode(self, prompt: str) -> None:
        key = self._served.prompt_key(prompt)
        if key not in self._features:
            served = self._served
            ran = await self._dispatcher.run(served.loaded, served.prompt_step(), prompt, self._scope)
            self._features[key] = ran.result
