"""The device: one thread that executes batches for all cards. Knows no sessions and no deadlines.

`Device` is what the dispatcher needs; tests hand in a fake one that takes virtual time. The only module of the engine
that knows a tensor library, and only to keep it on one thread and to weigh features.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from ..models.contract.cache import CacheView
from ..models.contract.loaded import LoadedCard
from ..models.contract.loop import StepKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one step kind; row i reads `views[i]`. A prompt_encode row is its text."""

    loaded: LoadedCard
    kind: StepKind
    rows: tuple[Any, ...]
    views: tuple[CacheView | None, ...]


class ShortBatch(RuntimeError):
    """A runtime returned another number of results than it was given rows."""


def execute(batch: Batch) -> list[Any]:
    """Run one batch on the calling thread."""
    runtime = batch.loaded.runtime
    if batch.kind is StepKind.PROMPT_ENCODE:
        return [runtime.encode_prompt(text) for text in batch.rows]
    results = runtime.execute(batch.kind, batch.rows, batch.views)
    if len(results) != len(batch.rows):
        raise ShortBatch(f"{batch.kind} of '{batch.loaded.card.name}': {len(batch.rows)} rows, {len(results)} results")
    return list(results)


class Device(Protocol):
    """What runs batches, one at a time. Exceptions of a batch come out of `run`."""

    @property
    def name(self) -> str: ...

    async def allocate(self, loaded: LoadedCard, slots: int) -> None: ...

    async def run(self, batch: Batch) -> list[Any]: ...

    async def close(self) -> None: ...


class ThreadDevice:
    """This machine's CPU on one thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(
            1, thread_name_prefix="device", initializer=torch.set_num_threads, initargs=(1,)
        )

    @property
    def name(self) -> str:
        return "cpu"

    async def allocate(self, loaded: LoadedCard, slots: int) -> None:
        await self._call(lambda: loaded.runtime.allocate(slots))

    async def run(self, batch: Batch) -> list[Any]:
        return await self._call(lambda: execute(batch))

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def size_of(feature: object) -> int:
    """Bytes a cached feature holds; 0 for what is neither a tensor nor an array (or a sequence of them)."""
    match feature:
        case torch.Tensor():
            return feature.element_size() * feature.nelement()
        case np.ndarray():
            return feature.nbytes
        case list() | tuple():
            return sum(size_of(part) for part in feature)
        case _:
            return 0
