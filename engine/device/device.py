"""The device: one thread that executes batches for all cards. Knows no sessions and no deadlines.

`Device` is what the dispatcher needs; tests hand in a fake one that takes virtual time. A batch may be handed over
while another runs: it begins the moment that one ends, and can be taken back until then. The only module of the engine
that imports a tensor library, and only where a card has loaded it: to keep it on one thread.
"""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ...clock import Clock
from ...models.contract.cache import CacheView
from ...models.contract.loaded import LoadedCard
from ...models.contract.loop import StepKind
from ...models.contract.placement import Placement
from ...models.holding import Memory
from ..caches.entry_io import transfer
from .faults import FaultOf, ShortBatch, fault_of
from .instructions import instruction_set
from .memory import device_memory


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one step of a loop; row i reads `views[i]`. A prompt_encode row is its text, of no loop ('')."""

    loaded: LoadedCard
    loop: str
    kind: StepKind
    rows: tuple[Any, ...]
    views: tuple[CacheView | None, ...]

    @property
    def where(self) -> Placement:
        """On which of the device's threads the card's program runs this kind."""
        return self.loaded.card.program.where(self.loop, self.kind)


@dataclass(frozen=True, slots=True)
class RowFault:
    """Instead of a result: this row of a batch failed, the others did not."""

    problem: Exception


def execute(batch: Batch) -> list[Any]:
    """Run one batch on the calling thread. When a batch fails its rows run one by one, so each answers for itself.

    A row may run twice: it only reads what is committed and writes its own staged entry.
    """
    runtime = batch.loaded.runtime
    if batch.kind is StepKind.PROMPT_ENCODE:
        return [runtime.encode_prompt(text) for text in batch.rows]
    if batch.kind is StepKind.CACHE_IO:
        return [transfer(batch.loaded, row) for row in batch.rows]
    try:
        results = runtime.execute(batch.kind, batch.rows, batch.views)
    except Exception as problem:
        if len(batch.rows) == 1 or fault_of(problem) is not FaultOf.REQUEST:
            raise
        return [_alone(batch, index) for index in range(len(batch.rows))]
    if len(results) != len(batch.rows):
        raise ShortBatch(f"{batch.kind} of '{batch.loaded.card.name}': {len(batch.rows)} rows, {len(results)} results")
    return list(results)


def _alone(batch: Batch, index: int) -> Any:
    alone = Batch(batch.loaded, batch.loop, batch.kind, batch.rows[index : index + 1], batch.views[index : index + 1])
    try:
        return execute(alone)[0]
    except Exception as problem:
        if fault_of(problem) is FaultOf.DEVICE:
            raise
        return RowFault(problem)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a batch returned, when it began on its thread and how many seconds it took there."""

    results: list[Any]
    started: float
    seconds: float


Ended = Callable[[Measured | Exception], None]
Revoke = Callable[[], bool]


class Device(Protocol):
    """What runs batches: one after the other; those placed on the auxiliary thread run beside them."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str:
        """What it is, whichever of its kind: prices of one are prices of the other."""
        ...

    def memory(self) -> Memory:
        """What it has, and what is free beside the cards that are loaded."""
        ...

    async def allocate(self, loaded: LoadedCard, slots: int) -> None: ...

    def start(self, batch: Batch, ended: Ended) -> Revoke:
        """Run the batch when those before it are done; `ended` is called on the event loop. What comes back takes it
        back: True when it had not begun, then it never runs and `ended` is never called.
        """
        ...

    async def close(self) -> None: ...


async def run(device: Device, batch: Batch) -> Measured:
    """Start a batch and wait for it; raises what it raised."""
    done: asyncio.Future[Measured] = asyncio.get_running_loop().create_future()

    def ended(outcome: Measured | Exception) -> None:
        if isinstance(outcome, Measured):
            done.set_result(outcome)
        else:
            done.set_exception(outcome)

    device.start(batch, ended)
    return await done


class ThreadDevice:
    """The device that this process sees: a thread for its batches and an auxiliary one.

    `sharers`: processes that divide it among themselves.
    """

    def __init__(self, clock: Clock, name: str = "cpu", sharers: int = 1) -> None:
        self.name, self._clock, self._sharers = name, clock, sharers
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="device", initializer=_on_one_thread)
        self._aux = ThreadPoolExecutor(1, thread_name_prefix="aux", initializer=_on_one_thread)

    @property
    def model(self) -> str:
        kind = instruction_set()
        if kind.startswith("cuda"):
            return kind
        return "cpu" if self._sharers == 1 else f"cpu 1/{self._sharers}"

    def memory(self) -> Memory:
        return device_memory()

    async def allocate(self, loaded: LoadedCard, slots: int) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, loaded.runtime.allocate, slots)

    def start(self, batch: Batch, ended: Ended) -> Revoke:
        thread = self._aux if batch.where is Placement.AUX else self._thread
        loop = asyncio.get_running_loop()
        work = thread.submit(self._measured, batch)
        work.add_done_callback(lambda work: work.cancelled() or loop.call_soon_threadsafe(ended, work.result()))
        return work.cancel

    def _measured(self, batch: Batch) -> Measured | Exception:
        started = self._clock.now()
        try:
            return Measured(execute(batch), started, self._clock.now() - started)
        except Exception as problem:
            return problem

    async def close(self) -> None:
        for thread in (self._aux, self._thread):
            await asyncio.get_running_loop().run_in_executor(None, thread.shutdown)


def _on_one_thread() -> None:
    """Cards are loaded before the device's first step: what no card has imported, a worker does without."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)


@runtime_checkable
class Weighed(Protocol):
    """A tensor or an array."""

    @property
    def nbytes(self) -> int: ...


def size_of(feature: object) -> int:
    """Bytes a cached feature holds; 0 for what is neither a tensor nor an array (or a sequence of them)."""
    match feature:
        case Weighed():
            return feature.nbytes
        case list() | tuple():
            return sum(size_of(part) for part in feature)
        case _:
            return 0
