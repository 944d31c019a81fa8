"""Observers: they see every batch that ran, on the engine's loop, before its rows get their results.

The history (`history.py`) is always one. What one knows of a row beyond the batch belongs into the loop's state
(`models/contract/intercept.py`), not here.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from ..scheduling.costs import StepKey
from ..scheduling.ticket import Ticket


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
