"""The device: one thread that executes batches for all cards. Knows no sessions and no deadlines.

`Device` is what the dispatcher needs; tests hand in a fake one that takes virtual time. A batch may be handed over
while another runs: it begins the moment that one ends, and can be taken back until then. The only module of the engine
that imports a tensor library, and only where a card has loaded it: to keep it on one thread.
"""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ...clock import Clock
from ...models.contract.loaded import LoadedCard
from ...models.contract.placement import Placement
from ...models.holding import Memory
from .batch import Batch, launch
from .instructions import instruction_set
from .memory import device_memory
from .streams import HostStream, WorkStream, gpu_stream


@dataclass(frozen=True, slots=True)
class Measured:
    """What a batch returned, when it began on its thread and how many seconds its device worked on it."""

    results: list[Any]
    started: float
    seconds: float


def measured(batch: Batch, clock: Clock, stream: WorkStream) -> Measured | Exception:
    """Run one batch on the calling thread, until its device has done it: what it returned, or what was raised."""
    started = clock.now()
    try:
        span = stream.begin()
        launched = launch(batch)
        seconds = span.end()
        return Measured(launched.results(), started, seconds)
    except Exception as problem:
        return problem


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


class DeviceThread:
    """One thread of a device and the streams that its batches run in: a GPU's for cards whose work a GPU does, made
    when the first of them comes, and the thread itself for all others. `own`: a stream beside that of other threads.
    """

    def __init__(self, name: str, clock: Clock, own: bool, gpu: Callable[[bool], WorkStream] = gpu_stream) -> None:
        self._clock, self._own, self._make = clock, own, gpu
        self._host = HostStream(clock)
        self._gpu: WorkStream | None = None
        self._prepared = False
        self.executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    def submit(self, batch: Batch) -> "Future[Measured | Exception]":
        return self.executor.submit(self._run, batch)

    def _run(self, batch: Batch) -> Measured | Exception:
        try:
            stream = self._stream(batch.loaded)
        except Exception as problem:
            return problem
        return measured(batch, self._clock, stream)

    def _stream(self, loaded: LoadedCard) -> WorkStream:
        if not self._prepared and (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(1)
            self._prepared = True
        if not loaded.on_gpu:
            return self._host
        if self._gpu is None:
            self._gpu = self._make(self._own)
        return self._gpu


class ThreadDevice:
    """The device that this process sees: a thread for its batches and an auxiliary one.

    `sharers`: processes that divide it among themselves.
    """

    def __init__(self, clock: Clock, name: str = "cpu", sharers: int = 1) -> None:
        self.name, self._sharers = name, sharers
        self._thread, self._aux = DeviceThread("device", clock, own=False), DeviceThread("aux", clock, own=True)

    @property
    def model(self) -> str:
        kind = instruction_set()
        if kind.startswith("cuda"):
            return kind
        return "cpu" if self._sharers == 1 else f"cpu 1/{self._sharers}"

    def memory(self) -> Memory:
        return device_memory()

    async def allocate(self, loaded: LoadedCard, slots: int) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread.executor, loaded.runtime.allocate, slots)

    def start(self, batch: Batch, ended: Ended) -> Revoke:
        loop = asyncio.get_running_loop()
        work = (self._aux if batch.where is Placement.AUX else self._thread).submit(batch)
        work.add_done_callback(lambda work: work.cancelled() or loop.call_soon_threadsafe(ended, work.result()))
        return work.cancel

    async def close(self) -> None:
        for thread in (self._aux, self._thread):
            await asyncio.get_running_loop().run_in_executor(None, thread.executor.shutdown)


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
