"""What the steps of a card take on a device: the figures a simulated device works by, and where they come from.

A price is of a batch by its rows. What a step really takes is its price times a factor, drawn from its session, chunk
and number alone: whoever runs the same step pays the same.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..engine.caches.entry_io import WriteEntries
from ..engine.caches.weights_io import AllocateSlots, ClearEntry, ReadWeights, WriteWeights
from ..engine.device.batch import Batch
from ..engine.scheduling.deadlines import draw
from ..models.contract.card import ModelCard
from ..models.contract.footprint import Footprint
from ..models.contract.loaded import LoadedCard
from ..models.contract.loop import StepKind
from ..models.holding import CardBytes, card_bytes
from .card import SimulatedRow, simulated

ASSUMED_SCATTER = (*(0.98 + 0.04 * i / 998 for i in range(999)), 1.5)
"""Where nothing was measured: 2 % to either side, and one step in a thousand takes half as long again."""
STEPS_MAX = 256


@dataclass(frozen=True, slots=True)
class StepPrice:
    """`by_rows`: (rows, seconds) in rising order, 1 row first. `scatter`: factors that are equally likely."""

    kind: StepKind
    by_rows: tuple[tuple[int, float], ...]
    scatter: tuple[float, ...] = ASSUMED_SCATTER

    def seconds(self, rows: int) -> float:
        """On the line between two known counts, beyond the last on that of the last two; one alone shares nothing."""
        if len(self.by_rows) == 1:
            return self.by_rows[0][1] * rows
        above = next((i for i, (count, _) in enumerate(self.by_rows) if count >= rows), len(self.by_rows) - 1)
        (low, cheap), (high, dear) = self.by_rows[max(0, above - 1)], self.by_rows[max(1, above)]
        return cheap + (dear - cheap) * (rows - low) / (high - low)

    def factor(self, row: object) -> float:
        match row:
            case SimulatedRow():
                drawn = draw(row.seed, row.chunk * STEPS_MAX + row.step)
            case str():
                drawn = draw(0, zlib.crc32(row.encode()))
            case _:
                return 1.0
        return self.scatter[(drawn >> 20) % len(self.scatter)]


@dataclass(frozen=True, slots=True)
class CardPrices:
    """One card on one device. `kinds`: a chunk's steps at the recipe's default, in order. `encode`: seconds a frame.

    `origin` says where the figures come from. `footprint`: where its bytes are counted.
    """

    card: ModelCard
    origin: str
    kinds: tuple[StepKind, ...]
    steps: Mapping[StepKind, StepPrice]
    encode: float
    footprint: Footprint | None = None

    @property
    def bytes(self) -> CardBytes:
        return card_bytes(self.card, self.footprint, self.card.recipe.default.precision)

    @property
    def chunk_seconds(self) -> float:
        """How long a chunk is shown."""
        return self.card.frame.per_chunk / self.card.frame.fps

    @property
    def chunk_price(self) -> float:
        """Device-seconds of a chunk, one row, without scatter."""
        return sum(self.steps[kind].seconds(1) for kind in self.kinds)

    def loaded(self) -> LoadedCard:
        return simulated(self.card, self.kinds, self.footprint)


LINK = 2e10
"""Bytes a second between pinned host memory and a device: what PCIe 4 x16 reaches of its 32 GB/s."""


FILL = 5e11
"""Bytes a second that a device clears of its memory: less than any GPU of the data sheets reads or writes."""


def _moving(loaded: LoadedCard, row: object) -> float:
    """Seconds in which bytes cross, or are cleared."""
    cache = loaded.card.cache
    match row:
        case ReadWeights():
            return len(row.into) / LINK
        case WriteWeights():
            return len(row.data) / LINK
        case AllocateSlots() if cache is not None:
            return row.slots * cache.ring * cache.bytes_per_entry / FILL
        case ClearEntry() if cache is not None:
            return cache.bytes_per_entry / FILL
        case WriteEntries() if cache is not None:
            return len(row.data) * cache.bytes_per_entry / LINK
        case _:
            return 0.0


def cost_by(cards: Mapping[str, CardPrices]) -> Callable[[Batch], float]:
    """Seconds of a batch, for a `SimulatedDevice`. What no sheet prices takes what its bytes need; entries that are
    read leave beside the compute.
    """

    def cost(batch: Batch) -> float:
        price = cards[batch.loaded.card.name].steps.get(batch.kind)
        if price is None:
            return sum(_moving(batch.loaded, row) for row in batch.rows)
        return price.seconds(len(batch.rows)) * max(price.factor(row) for row in batch.rows)

    return cost
