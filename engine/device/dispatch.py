"""What stands in front of a device: a queue for its own thread, and one for the auxiliary thread.

    ticket -> where does the program run this kind? -> queue: device | aux -> batch -> results go back to their rows

Knows no sessions beyond their name.
"""

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...clock import Clock
from ...models.contract.cache import CacheView
from ...models.contract.loaded import LoadedCard
from ...models.contract.placement import Placement
from ..api import LatencyClass
from ..cancel import CancelScope
from ..scheduling.costs import Costs, StepKey
from ..scheduling.ticket import Rules, Ticket
from .device import Device
from .history import StepHistory
from .observers import Observer
from .queue import DEFAULT, DeviceQueue, StepRun

__all__ = ["Dispatcher", "StepRun"]


class Dispatcher:
    """Owns the queues; `reserved` tells when the next interactive chunk will need the device (infinity: not known).

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
        patience: float = DEFAULT.patience,
    ) -> None:
        self._numbers, self._clock = itertools.count(), clock
        self.costs = costs
        self.history = StepHistory()
        watching = (self.history, *observers)
        self._device = DeviceQueue(device, device.name, costs, clock, rules, reserved, watching, patience)
        aux = f"{device.name} {Placement.AUX}"
        self._aux = DeviceQueue(device, aux, costs, clock, rules, lambda: math.inf, watching, patience)
        self._queues = (self._device, self._aux)

    @property
    def busy(self) -> tuple[float, float]:
        """Seconds the device has worked on a batch, and beyond how many it hangs; of the queue that is nearer to it."""
        return max((queue.busy for queue in self._queues), key=lambda busy: busy[0] - busy[1])

    @property
    def lost(self) -> Exception | None:
        """What ended the device, if it has ended."""
        return next((queue.lost for queue in self._queues if queue.lost is not None), None)

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return all(queue.idle for queue in self._queues)

    @property
    def depth(self) -> int:
        return sum(queue.depth for queue in self._queues)

    async def run(
        self,
        loaded: LoadedCard,
        key: StepKey,
        row: Any,
        scope: CancelScope,
        view: CacheView | None = None,
        session: str = "",
        latency_class: LatencyClass = LatencyClass.INTERACTIVE,
        latest_start: float = math.inf,
        deadline: float = math.inf,
        remaining: float = 0.0,
        then: StepKey | None = None,
    ) -> StepRun:
        """Queue one step and wait for its result; `Ticket` says what the times mean. No ticket is made anywhere else.

        Raises what the step raised, or `Superseded` when it was withdrawn before it ran.
        """
        now = self._clock.now()
        ticket = Ticket(next(self._numbers), session, key, latency_class, now, latest_start, deadline, remaining, then)
        aux = loaded.card.program.where(key.loop, key.kind) is Placement.AUX
        queue = self._aux if aux else self._device
        return await queue.submit(ticket, loaded, row, view, scope)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Sessions whose steps wait and could be taken back."""
        return tuple(session for queue in self._queues for session in queue.waiting)

    def uses(self, card: str) -> bool:
        """Whether a step of that card waits or runs."""
        return any(card in queue.cards for queue in self._queues)

    def withdraw(self) -> None:
        """Take back the steps of cancelled scopes that have not started: they are at a boundary."""
        for queue in self._queues:
            queue.withdraw()

    def release(self, scope: CancelScope) -> None:
        """A chunk has ended: others may begin, where chunks run whole."""
        for queue in self._queues:
            queue.release(scope)

    def nudge(self) -> None:
        """Something that decisions depend on has changed."""
        for queue in self._queues:
            queue.nudge()

    async def serve(self) -> None:
        """Serve all queues until cancelled."""
        await asyncio.gather(*(queue.serve() for queue in self._queues))
