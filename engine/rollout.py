"""The batch program: a world rolled out along a list of actions, as fast as the device allows, frames in order.

The same loops, prices and queue as a session, in the background class; no playout clock and no encoder.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..clock import Clock
from ..models.contract.cache import CacheView
from ..models.contract.conditions import Conditions, PromptShare
from ..models.contract.loaded import LoadedCard
from ..models.contract.loop import Ask, Outcome, StepKind, WorkPlan
from ..models.contract.placement import Placement
from .api import LatencyClass
from .card import CardRuntime
from .device.device import Device
from .device.dispatch import Dispatcher, QueuedStep
from .drive import CancelScope, Writes, drive_chunk
from .scheduling.costs import Costs, StepKey
from .scheduling.scheduler import Rules, Ticket


class Rollout:
    """One world on a device of its own; `frames` may be asked once."""

    def __init__(self, loaded: LoadedCard, device: Device, clock: Clock, seed: int, steps: int | None = None) -> None:
        self._served, self._device, self._clock, self._seed = CardRuntime.with_slots(loaded, 1), device, clock, seed
        self._steps = steps or self._served.default_steps
        self._dispatcher = Dispatcher(device, Costs(), clock, Rules(1, 0.0, seed), lambda: math.inf)
        self._scope = CancelScope()

    async def frames(self, prompt: str, actions: Sequence[tuple[float, ...]]) -> AsyncIterator[npt.NDArray[np.uint8]]:
        """One chunk per action (a value per control); yields its frames as the card's `FrameSpec` says.

        Raises what a step raises.
        """
        served, chunks = self._served, deque[_Chunk](maxlen=2)
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
                chunks.append(chunk := self._begin(ask, writes, chunks[-1] if chunks else None))
                carry = await chunk.onward()
                if len(chunks) == 2:
                    yield (await chunks[0].task).frames
            if chunks:
                yield (await chunks[-1].task).frames
        finally:
            for task in (over := [serving, *(chunk.task for chunk in chunks)]):
                task.cancel()
            await asyncio.gather(*over, return_exceptions=True)

    def _begin(self, ask: Ask[Any], writes: Writes, before: "_Chunk | None") -> "_Chunk":
        loaded = self._served.loaded
        chunk = _Chunk(before, loaded.card.program.where(loaded.card.main_loop, StepKind.DECODE) is Placement.AUX)
        driven = drive_chunk(loaded.loop, ask, writes, self._execute, self._scope, loaded.card.frame, chunk)
        chunk.task = asyncio.create_task(driven)
        return chunk

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
        ran = await self._dispatcher.submit(ticket, QueuedStep(self._served.loaded, row, view, self._scope))
        return ran.result


class _Chunk:
    """`drive.Ahead` of one chunk: its world goes on before its pictures wherever those are made beside the device."""

    task: "asyncio.Task[Outcome[Any]]"

    def __init__(self, before: "_Chunk | None", wanted: bool) -> None:
        self._before, self.wanted = before, wanted
        self._gone: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def met(self) -> Any | None:
        before, self._before = self._before, None  # a long rollout keeps none of the chunks behind it
        return (await before.task).carry if before is not None and before._gone.done() else None

    def go(self, carry: Any) -> None:
        self._gone.set_result(carry)

    async def onward(self) -> Any:
        """What the next chunk begins with, as soon as it can."""
        await asyncio.wait([self.task, self._gone], return_when=asyncio.FIRST_COMPLETED)
        return self._gone.result() if self._gone.done() else self.task.result().carry
