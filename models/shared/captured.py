"""Captured passes: a whole pass of a network as one launch (a CUDA graph), beside the eager one that is always right.

    rows, arguments -> filled up to a bucket -> CacheKey -> captured? copied in, replayed, rows cut off | eager

A graph is made for exact shapes: kind, rows and window fill are in its key, with all else that can change a result. How
many rows are captured is declared (`Buckets`), other counts are filled up with their last row, and what fits no bucket
runs eagerly. Warm-up touches every bucket, so that none is captured while somebody watches. The first run of each is
compared with the eager one. A pass that writes is never captured: rows to fill up with have nowhere to write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..contract.cache_key import CacheKey
from .compiled import CompileMismatch

Arguments = tuple[Tensor, ...]
Pass = Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class Buckets:
    """Counts of rows that are captured, the smallest first. A pass of fewer rows is filled up to the next."""

    rows: tuple[int, ...] = (1, 2, 4, 8)

    def of(self, rows: int) -> int | None:
        return next((bucket for bucket in self.rows if bucket >= rows), None)


class Capture(Protocol):
    """Records a pass over buffers that stay where they are: how to run it again, and where its result lies then."""

    def __call__(self, function: Pass, buffers: Arguments) -> tuple[Callable[[], None], Tensor]: ...


def cuda_graph(function: Pass, buffers: Arguments) -> tuple[Callable[[], None], Tensor]:
    """As a CUDA graph, after runs aside that make libraries choose and allocate."""
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            function(*buffers)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = function(*buffers)
    return graph.replay, made


@dataclass(slots=True)
class _Form:
    buffers: Arguments
    replay: Callable[[], None]
    made: Tensor


class CapturedPasses:
    """Of the card `made_by`. `tolerance`: largest difference from the eager pass, as a share of its largest value."""

    def __init__(self, made_by: CacheKey, capture: Capture, tolerance: float, buckets: Buckets | None = None) -> None:
        self._made_by, self._capture, self._tolerance = made_by, capture, tolerance
        self._buckets = buckets or Buckets()
        self._forms: dict[CacheKey, _Form] = {}

    @property
    def keys(self) -> tuple[CacheKey, ...]:
        return tuple(self._forms)

    def forget(self) -> None:
        """Weights or caches are elsewhere: what was captured reads where they were."""
        self._forms.clear()

    def run(self, kind: str, function: Pass, arguments: Arguments) -> Tensor:
        """`function(*arguments)`; every argument and the result have the rows in front. Raises `CompileMismatch`."""
        rows = len(arguments[0])
        bucket = self._buckets.of(rows)
        if bucket is None:
            return function(*arguments)
        full = tuple(_filled(argument, bucket) for argument in arguments)
        key = self._made_by.part("captured pass", step=kind, shape=tuple(tuple(one.shape) for one in full))
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._made(function, full)
            form.replay()
            self._compare(key, form.made[:rows], function(*arguments))
        else:
            for buffer, argument in zip(form.buffers, full, strict=True):
                buffer.copy_(argument)
            form.replay()
        return form.made[:rows].clone()

    def _made(self, function: Pass, full: Arguments) -> _Form:
        buffers = tuple(one.clone() for one in full)
        return _Form(buffers, *self._capture(function, buffers))

    def _compare(self, key: CacheKey, made: Tensor, expected: Tensor) -> None:
        size = float(expected.float().abs().max().clamp_min(1e-12))
        error = float((made.float() - expected.float()).abs().max()) / size
        if not error <= self._tolerance:
            raise CompileMismatch(
                f"a pass of '{key.card}' captured for {key.step} is off by {error:.3g} of its largest value"
            )


def _filled(argument: Tensor, rows: int) -> Tensor:
    lacking = rows - len(argument)
    return argument if lacking == 0 else torch.cat((argument, argument[-1:].expand(lacking, *argument.shape[1:])))
