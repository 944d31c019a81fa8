"""Observers: they see every batch that ran, on the engine's loop, before its rows get their results.

    Profiler   feeds the prices and the history; always there

What one knows of a row beyond the batch belongs into the loop's state (`models/contract/intercept.py`), not here.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

from ..api import BatchRan
from ..scheduling.costs import Costs, StepKey
from ..scheduling.ticket import Ticket
from .history import StepHistory


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch that ran; a row that failed has a `RowFault` for a result. Observers look and change nothing."""

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
