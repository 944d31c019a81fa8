"""A batch, and what it comes to: rows of one step on the calling thread, each answering for itself.

    launch -> [ the device works on it ] -> results: a row's own, or a fault of that row alone

Whether a row's numbers are finite is counted where they lie and read with them: on a GPU the count is handed over
behind the work itself and copied to the host beside it, so nobody waits for it alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ...models.contract.cache import CacheView
from ...models.contract.loaded import LoadedCard
from ...models.contract.loop import StepKind
from ...models.contract.placement import Placement
from ...models.shared import serial
from ..caches.entry_io import transfer
from ..caches.weights_io import move
from .faults import FaultOf, ShortBatch, fault_of

if TYPE_CHECKING:
    from torch import Tensor


class NotFinite(ArithmeticError):
    """A step returned infinities or what is not a number."""


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


@dataclass(frozen=True, slots=True)
class Launched:
    """What a batch returned, perhaps before its device has worked it out. `bad`: of each row, numbers not finite."""

    batch: Batch
    made: list[Any]
    bad: "list[int | Tensor]"

    def results(self) -> list[Any]:
        """Once the device is done: a row that came to numbers which are not finite has failed."""
        name, kind = self.batch.loaded.card.name, self.batch.kind
        return [
            RowFault(NotFinite(f"{kind} of card '{name}': {count} numbers are not finite")) if count else result
            for result, count in zip(self.made, map(int, self.bad), strict=True)
        ]


def launch(batch: Batch) -> Launched:
    """Hand one batch to what computes it, from the calling thread. When a batch fails its rows run one by one, so each
    answers for itself: a row may run twice, it only reads what is committed and writes its own staged entry.
    """
    try:
        made = _made(batch)
    except Exception as problem:
        if len(batch.rows) == 1 or fault_of(problem) is not FaultOf.REQUEST:
            raise
        made = [_alone(batch, index) for index in range(len(batch.rows))]
    counts = [count_bad(result) for result in made]
    return Launched(batch, made, [n if isinstance(n, int) else n.to("cpu", non_blocking=True) for n in counts])


def _made(batch: Batch) -> list[Any]:
    runtime = batch.loaded.runtime
    if batch.kind is StepKind.PROMPT_ENCODE:
        return [runtime.encode_prompt(text) for text in batch.rows]
    if batch.kind is StepKind.CACHE_IO:
        return [transfer(batch.loaded, row) for row in batch.rows]
    if batch.kind is StepKind.WEIGHTS_IO:
        for row in batch.rows:
            move(batch.loaded, row)
        return [None] * len(batch.rows)
    results = runtime.execute(batch.kind, batch.rows, batch.views)
    if len(results) != len(batch.rows):
        raise ShortBatch(f"{batch.kind} of '{batch.loaded.card.name}': {len(batch.rows)} rows, {len(results)} results")
    return list(results)


def _alone(batch: Batch, index: int) -> Any:
    alone = Batch(batch.loaded, batch.loop, batch.kind, batch.rows[index : index + 1], batch.views[index : index + 1])
    try:
        return _made(alone)[0]
    except Exception as problem:
        if fault_of(problem) is FaultOf.DEVICE:
            raise
        return RowFault(problem)


def count_bad(result: object) -> "int | Tensor":
    """How many numbers of a step's result are not finite: of all in a struct, of those in it, and of sequences. What
    lies on a device is counted there.
    """
    match result:
        case msgspec.Struct():
            return sum(map(count_bad, msgspec.structs.astuple(result)))
        case tuple() | list():
            return sum(map(count_bad, result))
        case np.ndarray() if result.dtype.kind == "f":
            return result.size - int(np.count_nonzero(np.isfinite(result)))
        case _ if serial.is_tensor(result) and result.is_floating_point():
            return result.numel() - result.isfinite().sum()
        case _:
            return 0
