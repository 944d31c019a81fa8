"""A device in virtual time: it runs every batch for real, at the end of the seconds that a price says.

Knows no price sheet: `cost` is asked when a batch begins. Each of its queues runs one batch after the other.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..engine.caches.weights_io import AllocateSlots, DropComponent, ReserveSlots, WeightsRow, WriteWeights
from ..engine.device.batch import Batch, launch
from ..engine.device.device import Ended, Measured, Revoke
from ..models.contract.loaded import LoadedCard
from ..models.contract.loop import StepKind
from ..models.contract.placement import Placement
from ..models.holding import Memory

PLENTY = 1 << 40
"""Bytes of a device whose memory is not the matter."""


@dataclass(slots=True, eq=False)
class _Turn:
    batch: Batch
    ended: Ended
    started: float = 0.0


class SimulatedDevice:
    """An `engine.device.device.Device`. `handover`: seconds from a batch's end until the engine hears of it.

    `worked`: seconds it has spent on batches, by queue; `batches` and `rows` count them. `revoked`: taken back in time.
    `total` bytes of memory hold `weights` of cards and `slots` of sessions, by card; beyond them it raises, as a GPU
    does. `overlapped`: began while one was on another queue.
    """

    def __init__(
        self,
        cost: Callable[[Batch], float],
        name: str = "simulated",
        handover: float = 0.0,
        total: int = PLENTY,
        weights: int = 0,
    ) -> None:
        self.name, self.model, self.cost, self.handover = name, name, cost, handover
        self.total, self.weights, self.slots = total, weights, dict[str, int]()
        self.fail: Callable[[Batch], None] = lambda batch: None
        self.worked: dict[Placement, float] = dict.fromkeys(Placement, 0.0)
        self.batches = self.rows = self.revoked = self.overlapped = 0
        self._turns: dict[Placement, deque[_Turn]] = {where: deque() for where in Placement}

    @property
    def busy(self) -> bool:
        return any(self._turns.values())

    def memory(self) -> Memory:
        return Memory(self.total, self.total - self.weights)

    async def allocate(self, loaded: LoadedCard, slots: int) -> None:
        loaded.runtime.allocate(slots)

    def start(self, batch: Batch, ended: Ended) -> Revoke:
        turn, queue = _Turn(batch, ended), self._turns[batch.where]
        queue.append(turn)
        if len(queue) == 1:
            self._begin(turn)
        return lambda: self._revoke(turn)

    async def close(self) -> None:
        pass

    def perform(self, batch: Batch) -> list[Any]:
        """What a batch does, at its end. Raises what the batch raises, or `fail`."""
        self.fail(batch)
        if batch.kind is StepKind.WEIGHTS_IO:
            for row in batch.rows:
                self.claim(batch.loaded, row)
        return launch(batch).results()

    @property
    def held(self) -> int:
        """Bytes of weights and slots."""
        return self.weights + sum(self.slots.values())

    def load(self, size: int) -> None:
        """So many bytes of weights are read onto it."""
        self.weights += size
        self._check(size)

    def _check(self, more: int) -> None:
        if more > 0 and self.held > self.total:
            raise RuntimeError(f"CUDA out of memory: {self.held} of {self.total} bytes")

    def claim(self, loaded: LoadedCard, row: WeightsRow) -> None:
        """What the row takes of its memory or gives back."""
        sizes = {} if loaded.components is None else loaded.components.sizes
        match row:
            case WriteWeights(start=0):
                self.load(sizes[row.component])
            case DropComponent():
                self.load(-sizes[row.component])
            case AllocateSlots() | ReserveSlots():
                cache = loaded.card.cache
                each = 0 if cache is None else cache.bytes_per_session
                self.slots[loaded.card.name] = row.slots * each
                self._check(row.slots)
            case _:
                pass

    def _begin(self, turn: _Turn) -> None:
        loop = asyncio.get_running_loop()
        turn.started = loop.time()
        self.overlapped += sum(bool(queue) for queue in self._turns.values()) > 1
        loop.call_later(self.cost(turn.batch), self._end, turn)

    def _end(self, turn: _Turn) -> None:
        loop, where = asyncio.get_running_loop(), turn.batch.where
        seconds = loop.time() - turn.started
        outcome: Measured | Exception
        try:
            outcome = Measured(self.perform(turn.batch), turn.started, seconds)
        except Exception as problem:
            outcome = problem
        self.worked[where] += seconds
        self.batches += 1
        self.rows += len(turn.batch.rows)
        queue = self._turns[where]
        queue.popleft()
        if queue:
            self._begin(queue[0])
        if self.handover:
            loop.call_later(self.handover, turn.ended, outcome)
        else:  # a turn later, as from a thread: what else is due at this very moment comes first
            loop.call_soon(loop.call_soon, turn.ended, outcome)

    def _revoke(self, turn: _Turn) -> bool:
        queue = self._turns[turn.batch.where]
        if turn not in queue or queue[0] is turn:
            return False
        queue.remove(turn)
        self.revoked += 1
        return True
