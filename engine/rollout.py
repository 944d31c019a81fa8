"""The batch program: a world rolled out along a list of actions, as fast as the device allows, frames in order.

The same driver, prices and queue as a session, in the background class; no playout clock and no encoder.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..clock import Clock
from ..models.contract.conditions import Conditions, PromptShare
from ..models.contract.loaded import LoadedCard
from ..models.contract.loop import Outcome
from .api import LatencyClass, Open
from .cancel import CancelScope
from .card import CardRuntime
from .device.device import Device
from .device.dispatch import Dispatcher
from .drive import DecodeOverlap
from .scheduling.costs import Costs
from .scheduling.ticket import Rules
from .session.chunk import EngineChunk
from .session.driver import ChunkDriver
from .session.world import SessionWorld


class Rollout:
    """One world on a device of its own; `frames` may be asked once."""

    def __init__(self, loaded: LoadedCard, device: Device, clock: Clock, seed: int, steps: int | None = None) -> None:
        self._served, self._device, self._clock = CardRuntime.with_slots(loaded, 1), device, clock
        self._dispatcher = Dispatcher(device, Costs(), clock, Rules(1, 0.0, seed), lambda: math.inf)
        self._scope = CancelScope()
        self._opening = Open("rollout", loaded.card.name, seed, LatencyClass.BACKGROUND, steps=steps)

    async def frames(self, prompt: str, actions: Sequence[tuple[float, ...]]) -> AsyncIterator[npt.NDArray[np.uint8]]:
        """One chunk per action (a value per control); yields its frames as the card's `FrameSpec` says.

        Raises what a step raises.
        """
        served = self._served
        await self._device.allocate(served.loaded, 1)
        serving = asyncio.create_task(self._dispatcher.serve())
        making: deque[asyncio.Task[Outcome[Any]]] = deque(maxlen=2)
        try:
            encoded = await self._dispatcher.run(served.loaded, served.prompt_step(), prompt, self._scope)
            shares = (PromptShare(served.prompt_key(prompt), 1.0),)
            world, overlap = SessionWorld(served, self._opening), None
            driver = ChunkDriver(
                world, self._dispatcher, LatencyClass.BACKGROUND, self._scope, lambda key: encoded.result
            )
            for controls in actions:
                overlap = DecodeOverlap(lambda: served.decodes_beside, world.go_on, before=overlap)
                conditions = Conditions(0, controls, (0.0, 0.0), shares, 1, 0)
                chunk = EngineChunk(world.number, conditions, self._scope, self._clock.now(), overlap=overlap)
                making.append(asyncio.create_task(_made(driver, chunk)))
                await overlap.boundary.wait()
                if len(making) == 2:
                    yield (await making[0]).frames
            if making:
                yield (await making[-1]).frames
        finally:
            for task in (over := [serving, *making]):
                task.cancel()
            await asyncio.gather(*over, return_exceptions=True)


async def _made(driver: ChunkDriver, chunk: EngineChunk) -> Outcome[Any]:
    carry = None
    try:
        outcome = await driver.drive(chunk)
        carry = outcome.carry
    finally:
        chunk.overlap.end(carry)
    return outcome
