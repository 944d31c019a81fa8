"""What each card of a device may have of its memory: all of them for good where they fit together, else in turns."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...models import holding
from ...models.contract.loaded import LoadedCard
from ...models.holding import DoesNotFit, Memory
from ..card import bytes_of
from ..device.memory import host_memory
from ..spec import EngineSpec
from .away import WeightsAway
from .turns import CardTurn, CardTurns


def turns_of(cards: Sequence[LoadedCard], memory: Memory, spec: EngineSpec, away: WeightsAway) -> CardTurns:
    """`memory`: of the device, free beside what is loaded and not away. Raises `DoesNotFit` when some card has not one
    session, not even alone.
    """
    counted = tuple(map(bytes_of, cards))
    gone = [[name for name in sizes_of(loaded) if away.has(loaded, name)] for loaded in cards]
    elsewhere = sum(sizes_of(loaded)[name] for loaded, names in zip(cards, gone, strict=True) for name in names)
    try:
        together = holding.slots(memory.less(elsewhere), counted, spec.slots, spec.max_rows)
    except DoesNotFit:
        if len(cards) == 1 or any(card.weights and not sizes_of(one) for card, one in zip(counted, cards, strict=True)):
            raise
        turns = _made(cards, gone, (spec.slots,) * len(cards), 0, spec.max_rows)
        there = sum(card.weights for card in turns.cards.values())
        turns.budget = holding.usable(memory, there)
        for card in counted:
            if turns.turn_of(card.name, ()) is None:
                alone = Memory(memory.total, there + memory.free - card.weights)
                raise DoesNotFit(holding.missing(alone, [card], card)) from None
        return turns
    turns = _made(cards, gone, together, 0, spec.max_rows)
    turns.budget = turns.bytes([card.whole(card.asked) for card in turns.cards.values()])
    return turns


def _made(
    cards: Sequence[LoadedCard], gone: Sequence[Sequence[str]], asked: Sequence[int], budget: int, rows: int
) -> CardTurns:
    made = [
        CardTurn(
            bytes=bytes_of(loaded),
            components=sizes_of(loaded),
            fixed=0 if sizes_of(loaded) else bytes_of(loaded).weights,
            asked=slots,
            there=set(sizes_of(loaded)) - set(names),
        )
        for loaded, names, slots in zip(cards, gone, asked, strict=True)
    ]
    return CardTurns(made, budget, rows)


def sizes_of(loaded: LoadedCard) -> dict[str, int]:
    """Bytes of the components that can leave the device, in the order of going."""
    return {} if loaded.components is None else dict(loaded.components.sizes)


def away_for(spec: EngineSpec, folder: Path | None = None) -> WeightsAway:
    """Host memory where the device has memory of its own; where it has not, they go to the disk at once."""
    bytes_max = spec.weights_memory
    if bytes_max is None:
        torch = sys.modules.get("torch")
        bytes_max = host_memory().free // 2 if torch is not None and torch.cuda.is_available() else 0
    return WeightsAway(bytes_max, folder or Path(tempfile.gettempdir()))
