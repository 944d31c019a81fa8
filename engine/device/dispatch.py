"""What stands in front of a device: one lane for its own thread, one for what a card's program lets run beside it.

    ticket -> where does the program run this kind? -> lane: device | beside -> batch -> results go back to their rows

Knows no sessions beyond their name.
"""

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence

from ...clock import Clock
from ...models.contract.placement import Placement
from ..scheduling.costs import Costs
from ..scheduling.scheduler import Rules, Ticket
from .device import Device
from .history import StepHistory
from .observers import Observer, Profiler
from .queue import DeviceQueue, QueuedStep, StepRun

__all__ = ["Dispatcher", "QueuedStep", "StepRun"]


class Dispatcher:
    """Owns the lanes; `reserved` tells when the next interactive chunk will need the device (infinity: not known).

    `observers` see every batch that ran; one that has nothing to do is not handed in.
    """

    def __init__(
        self,
        device: Device,
        costs: Costs,
        clock: Clock,
        rules: Rules,
        reserved: Callable[[], float],
        observers: Sequence[Observer] = (),
    ) -> None:
        self._numbers = itertools.count()
        self.trail = StepHistory()
        watching = (Profiler(costs, self.trail, device.name), *observers)
        self._device = DeviceQueue(device, costs, clock, rules, reserved, watching)
        self._beside = DeviceQueue(device, costs, clock, rules, lambda: math.inf, watching)
        self._lanes = (self._device, self._beside)

    @property
    def busy(self) -> tuple[float, float]:
        """Seconds the device has worked on a batch, and beyond how many it hangs; of the lane that is nearer to it."""
        return max((lane.busy for lane in self._lanes), key=lambda busy: busy[0] - busy[1])

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return all(lane.idle for lane in self._lanes)

    @property
    def depth(self) -> int:
        return sum(lane.depth for lane in self._lanes)

    def number(self) -> int:
        return next(self._numbers)

    async def submit(self, ticket: Ticket, job: QueuedStep) -> StepRun:
        """Wait for the step to run. Raises what the step raised, or `Superseded` when it was withdrawn in time."""
        beside = job.loaded.card.program.where(ticket.key.loop, ticket.key.kind) is Placement.AUX
        return await (self._beside if beside else self._device).submit(ticket, job)

    def withdraw(self) -> None:
        """Take back the steps of cancelled scopes that have not started: they are at a boundary."""
        for lane in self._lanes:
            lane.withdraw()

    def nudge(self) -> None:
        """Something that decisions depend on has changed."""
        for lane in self._lanes:
            lane.nudge()

    async def run(self) -> None:
        """Serve all lanes until cancelled."""
        await asyncio.gather(*(lane.run() for lane in self._lanes))
