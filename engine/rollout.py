"""The batch program: a world rolled out along a list of actions, as fast as the device allows, frames in order.

The same loops, prices and queue as a session, in the background class; no playout clock and no encoder.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..clock import Clock
from ..models.contract.cache import CacheView
from ..models.contract.conditions import Conditions, PromptShare
from ..models.contract.loaded import LoadedCard
from ..models.contract.loop import Ask, WorkPlan
from .api import LatencyClass
from .device.dispatch import Dispatcher, Job
from .device.worker import Device
from .drive import Scope, drive_chunk
from .scheduling.costs import Costs, StepKey
from .scheduling.scheduler import Rules, Ticket
from .served import ServedCard


class Rollout:
    """One world on a device of its own; `frames` may be asked once."""

    def __init__(self, loaded: LoadedCard, device: Device, clock: Clock, seed: int, steps: int | None = None) -> None:
        self._served, self._device, self._clock, self._seed = ServedCard.with_slots(loaded, 1), device, clock, seed
        self._steps = steps or self._served.default_steps
        self._dispatcher = Dispatcher(device, Costs(), clock, Rules(1, 0.0, seed), lambda: math.inf)
        self._scope = Scope()

    async def frames(self, prompt: str, actions: Sequence[tuple[float, ...]]) -> AsyncIterator[npt.NDArray[np.uint8]]:
        """One chunk per action (a value per control); yields its frames as the card's `FrameSpec` says.

        Raises what a step raises.
        """
        served = self._served
        await self._device.allocate(served.loaded, 1)
        serving = asyncio.create_task(self._dispatcher.run())
        try:
            feature = await self._run(served.prompt_step(), prompt, None)
            share = (PromptShare(served.prompt_key(prompt), 1.0),)
            slot = served.pool.acquire()
            writes, carry = served.writes(slot), None
            for number, controls in enumerate(actions):
                conditions = Conditions(0, controls, (0.0, 0.0), share, 1, 0)
                ask: Ask[Any] = Ask(
                    self._seed, 0, number, self._steps, conditions, ((feature, 1.0),), carry, served.pool.count(slot)
                )
                outcome = await drive_chunk(
                    served.loaded.loop, ask, writes, self._execute, self._scope, served.loaded.card.frame
                )
                carry = outcome.carry
                yield outcome.frames
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving

    async def _execute(self, plan: WorkPlan[Any], view: CacheView | None) -> Any:
        return await self._run(self._served.step_key(plan), plan.row, view)

    async def _run(self, key: StepKey, row: Any, view: CacheView | None) -> Any:
        ticket = Ticket(
            number=self._dispatcher.number(),
            session="rollout",
            key=key,
            latency_class=LatencyClass.BACKGROUND,
            queued=self._clock.now(),
            latest_start=math.inf,
            deadline=math.inf,
            remaining=0.0,
        )
        ran = await self._dispatcher.submit(ticket, Job(self._served.loaded, row, view, self._scope))
        return ran.result
