"""A GPU that nobody has, in virtual time: work is handed over to it and done later; who reads too early has to wait.

    thread of the device   [ launch ][ wait for the event        ]
    stream of the GPU          [ work                            ]

The engine's own code measures it (`engine/device/streams.py`, `measured`); only events, tensors and time are made up. A
tensor on it is a real one that notes who waits for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from worldroom.engine.device.batch import Batch
from worldroom.engine.device.device import Ended, Measured, Revoke, measured
from worldroom.engine.device.streams import EventStream, WorkStream
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.placement import Placement
from worldroom.models.holding import Memory
from worldroom.simulation.card import SimulatedRuntime

LAUNCH = 0.0005
"""Seconds in which the thread hands over one batch, whatever that batch takes."""


@dataclass(frozen=True, slots=True)
class Waited:
    """`by`: the step whose batch had the device's thread; None = the event loop itself waited."""

    by: StepKind | None
    seconds: float


class VirtualGpu:
    """Its clock is the time of whoever asks: of the thread that has its turn, else of the event loop."""

    def __init__(self) -> None:
        self.done = dict.fromkeys(Placement, 0.0)
        """When each stream has done all that it was handed."""
        self.worked: list[tuple[StepKind, int, float]] = []
        """Kind, rows and true seconds of each batch."""
        self.waited: list[Waited] = []
        self._turn: Batch | None = None
        self._host = 0.0
        self._kind = type("GpuTensor", (_GpuTensor,), {"gpu": self})

    def now(self) -> float:
        return asyncio.get_running_loop().time() if self._turn is None else self._host

    @property
    def here(self) -> Placement:
        return Placement.DEVICE if self._turn is None else self._turn.where

    def run(self, batch: Batch, stream: WorkStream) -> tuple[Measured | Exception, float]:
        """One batch on the device's thread: its outcome, and the seconds for which the thread was busy with it."""
        self._host = began = asyncio.get_running_loop().time()
        self._turn = batch
        outcome = measured(batch, self, stream)
        self._turn = None
        return outcome, self._host - began

    def hand_over(self, kind: StepKind, rows: int, seconds: float) -> None:
        self._host += LAUNCH
        self.done[self.here] = max(self.done[self.here], self._host) + seconds
        self.worked.append((kind, rows, seconds))

    def wait(self, until: float) -> None:
        seconds = max(0.0, until - self.now())
        self.waited.append(Waited(None if self._turn is None else self._turn.kind, seconds))
        self._host += seconds

    def event(self) -> "VirtualEvent":
        return VirtualEvent(self)

    def tensor(self, value: Tensor) -> Tensor:
        """The same numbers, on this GPU."""
        return value.detach().as_subclass(self._kind)

    def moved(self, value: Any) -> Any:
        """A row or a result with every tensor of it on this GPU."""
        return _moved(value, self.tensor)


class VirtualEvent:
    """An `engine.device.streams.DeviceEvent`."""

    def __init__(self, gpu: VirtualGpu) -> None:
        self._gpu, self.at = gpu, 0.0

    def record(self) -> None:
        self.at = max(self._gpu.done[self._gpu.here], self._gpu.now())

    def synchronize(self) -> None:
        self._gpu.wait(self.at)

    def elapsed_time(self, end_event: Any, /) -> float:
        return float(end_event.at - self.at) * 1000


class _GpuTensor(Tensor):
    """Whoever wants to know its numbers on the host waits for all that was handed over."""

    gpu: ClassVar[VirtualGpu]
    _READS = (
        Tensor.item, Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.__bool__, Tensor.__int__, Tensor.__float__,
        Tensor.nonzero, torch.nonzero, torch.masked_select, torch.equal, Tensor.equal, torch.allclose,
    )  # fmt: skip

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        gpu, to_host = cls.gpu, func is Tensor.to and "cpu" in args
        done = max(gpu.done.values())
        if func in cls._READS or (to_host and not kwargs.get("non_blocking")):
            gpu.wait(done)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
        if func in cls._READS or to_host:
            return _arriving(gpu, result, done) if kwargs.get("non_blocking") else result
        return _moved(result, lambda tensor: tensor.as_subclass(cls))


class Uploads(TorchFunctionMode):
    """While it is entered, copies to a device out of ordinary memory are seen to wait for all that was handed over."""

    def __init__(self, gpu: VirtualGpu) -> None:
        super().__init__()
        self._gpu = gpu

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        to_device = any(isinstance(given, torch.device) for given in (*args, *kwargs.values()))
        copies = func is torch.tensor or (func is Tensor.to and type(args[0]) is Tensor)
        if copies and to_device and not kwargs.get("non_blocking"):
            self._gpu.wait(max(self._gpu.done.values()))
        return func(*args, **kwargs)


class _HostCopy(Tensor):
    """On its way to the host: there is nothing to read before the GPU has come to it."""

    gpu: VirtualGpu
    ready: float

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        (copy,) = (arg for arg in args if isinstance(arg, _HostCopy))
        assert copy.gpu.now() >= copy.ready, "it was read before the GPU had written it"
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def _arriving(gpu: VirtualGpu, value: Tensor, ready: float) -> Tensor:
    copy = value.as_subclass(_HostCopy)
    copy.gpu, copy.ready = gpu, ready
    return copy


def _moved(value: Any, move: Callable[[Tensor], Tensor]) -> Any:
    """A result with every tensor of it moved."""
    match value:
        case Tensor():
            return move(value)
        case msgspec.Struct():
            fields = {name: _moved(getattr(value, name), move) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        case tuple() if not hasattr(value, "_fields"):
            return tuple(_moved(one, move) for one in value)
        case list():
            return [_moved(one, move) for one in value]
        case _:
            return value


class OnGpu(msgspec.Struct, frozen=True):
    """What every step comes to."""

    x_N: Tensor


class GpuRuntime(SimulatedRuntime):
    """Steps of a simulated card that take the GPU `seconds` for so many rows. `bad`: of the next ones, so many rows
    come to numbers that are not finite.
    """

    def __init__(self, gpu: VirtualGpu, seconds: Callable[[StepKind, int], float]) -> None:
        self._gpu, self._seconds = gpu, seconds
        self.bad = 0

    def execute(self, kind: StepKind, rows: Sequence[Any], views: Sequence[Any]) -> list[Any]:
        self._gpu.hand_over(kind, len(rows), self._seconds(kind, len(rows)))
        made = torch.zeros(len(rows), 4)
        if self.bad and kind is StepKind.DENOISE:
            made[0, 1:], self.bad = torch.nan, self.bad - 1
        return [OnGpu(self._gpu.tensor(row)) for row in made]

    def encode_prompt(self, text: str) -> Any:
        self._gpu.hand_over(StepKind.PROMPT_ENCODE, 1, self._seconds(StepKind.PROMPT_ENCODE, 1))
        return self._gpu.tensor(torch.zeros(4))


class AsynchronousDevice:
    """An `engine.device.device.Device` with that GPU. `stream`: how a thread measures, by events as on a real one."""

    name = model = "asynchronous"

    def __init__(self, gpu: VirtualGpu, stream: WorkStream | None = None) -> None:
        self._gpu, self._stream = gpu, stream or EventStream(gpu.event)
        self._turns: dict[Placement, deque[tuple[Batch, Ended]]] = {where: deque() for where in Placement}

    def memory(self) -> Memory:
        return Memory(1 << 40, 1 << 40)

    async def allocate(self, loaded: LoadedCard, slots: int) -> None:
        loaded.runtime.allocate(slots)

    def start(self, batch: Batch, ended: Ended) -> Revoke:
        turn, queue = (batch, ended), self._turns[batch.where]
        queue.append(turn)
        if len(queue) == 1:
            self._begin(batch.where)
        return lambda: self._revoke(turn)

    async def close(self) -> None:
        pass

    def _begin(self, where: Placement) -> None:
        batch, ended = self._turns[where][0]
        outcome, busy = self._gpu.run(batch, self._stream)
        asyncio.get_running_loop().call_later(busy, self._end, where, ended, outcome)

    def _end(self, where: Placement, ended: Ended, outcome: Measured | Exception) -> None:
        queue = self._turns[where]
        queue.popleft()
        if queue:
            self._begin(where)
        asyncio.get_running_loop().call_soon(ended, outcome)

    def _revoke(self, turn: tuple[Batch, Ended]) -> bool:
        queue = self._turns[turn[0].where]
        if turn not in queue or queue[0] is turn:
            return False
        queue.remove(turn)
        return True
