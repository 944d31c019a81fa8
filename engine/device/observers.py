"""Observers: they see every batch that ran, on the engine's loop, before its rows get their results.

    Profiler   feeds the prices and the history; always there
    Finite     a row whose result holds a number that is not finite becomes that row's fault

What one knows of a row beyond the batch belongs into the loop's state (`models/contract/intercept.py`), not here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np

from ...models.shared import serial
from ..api import BatchRan
from ..scheduling.costs import Costs, StepKey
from ..scheduling.ticket import Ticket
from .device import RowFault
from .history import StepHistory


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch that ran. An observer may change `results` in one way alone: it puts a `RowFault` for a row."""

    key: StepKey
    tickets: tuple[Ticket, ...]
    results: list[Any]
    started: float
    seconds: float
    price: float
    """What it was expected to take; infinity where that was not known."""
    device: str


class Observer(Protocol):
    def see(self, batch: BatchRecord) -> None: ...


class Profiler:
    """Prices learn from every batch, and people may look at what ran."""

    def __init__(self, costs: Costs, history: StepHistory) -> None:
        self._costs, self._history = costs, history

    def see(self, batch: BatchRecord) -> None:
        key = batch.key
        step = BatchRan(
            device=batch.device,
            card=key.card,
            loop=key.loop,
            kind=key.kind,
            sessions=tuple(ticket.session for ticket in batch.tickets),
            queued=min(ticket.queued for ticket in batch.tickets),
            started=batch.started,
            seconds=batch.seconds,
            price=batch.price if batch.price < math.inf else 0.0,
        )
        self._history.add(step)
        self._costs.observe(key, len(batch.tickets), batch.seconds)


class NotFinite(ArithmeticError):
    """A step returned infinities or what is not a number."""


class Finite:
    """See the module docstring."""

    def see(self, batch: BatchRecord) -> None:
        for row, result in enumerate(batch.results):
            bad = sum(_not_finite(part) for part in _parts(result))
            if bad:
                what = f"{batch.key.kind} of card '{batch.key.card}': {bad} numbers are not finite"
                batch.results[row] = RowFault(NotFinite(what))


def _parts(result: object) -> Iterator[object]:
    if isinstance(result, msgspec.Struct):
        for part in msgspec.structs.astuple(result):
            yield from _parts(part)
    else:
        yield result


def _not_finite(part: object) -> int:
    """How many numbers of an array or tensor are not finite; 0 for everything else."""
    if isinstance(part, np.ndarray):
        return 0 if part.dtype.kind != "f" else part.size - int(np.count_nonzero(np.isfinite(part)))
    if serial.is_tensor(part) and part.is_floating_point():
        return int(part.numel() - part.isfinite().sum())
    return 0
