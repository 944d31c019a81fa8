"""What sessions may fill of a device, and how many that is: one count for admission, simulation and docs/CAPACITY.md.

    usable      90 % of what the device has for us: the weights that are in it and what is free beside them
    weights     of all cards that share it, and what adapters may take beside them where there are any
    step        activations of the largest step, times the rows of one batch: no more rows than a card has sessions
    sessions    KV, decoder state and carry of each: what is left of the usable bytes / bytes of a session

Pure arithmetic over bytes; a card without a `Footprint` is counted by its cache alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .contract.card import ModelCard
from .contract.footprint import Footprint
from .contract.recipe import Precision
from .devices import DATA_SHEETS, USABLE

ROWS = 4
"""Of one batch, where nothing else is said."""
GB = 10**9


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a device; `free` beside the weights that are loaded, and whatever else others hold of it."""

    total: int
    free: int

    def less(self, weights: int) -> "Memory":
        """With these weights loaded too."""
        return Memory(self.total, self.free - weights)


@dataclass(frozen=True, slots=True)
class CardBytes:
    """What a card takes of a device. `activations`: of one row of its largest step. `session`: of one session."""

    name: str
    weights: int
    activations: int
    session: int


class DoesNotFit(ValueError):
    """Not one session of a card fits; the message is one line for a person."""


def card_bytes(card: ModelCard, footprint: Footprint | None, precision: Precision) -> CardBytes:
    """Weights count as the footprint's; full precision doubles what a footprint of published weights says in bf16."""
    cache = card.cache.bytes_per_session if card.cache else 0
    if footprint is None:
        return CardBytes(card.name, 0, 0, cache)
    wide = 2 if precision.full and not card.recipe.default.precision.full else 1
    session = footprint.session_bytes * wide
    if precision.narrow_kv and footprint.narrow_kv_bytes:
        session += footprint.narrow_kv_bytes - footprint.kv_bytes * wide
    return CardBytes(card.name, footprint.weight_bytes * wide, footprint.activation_bytes * wide, session)


def usable(memory: Memory, weights: int) -> int:
    """Bytes of the device for us; `weights`: of it, those that are loaded."""
    return int(USABLE * min(memory.total, weights + memory.free))


def room(memory: Memory, cards: Sequence[CardBytes]) -> int:
    """Bytes for sessions and steps, with the weights of these cards loaded; below 0 where not even they fit."""
    weights = sum(card.weights for card in cards)
    return usable(memory, weights) - weights


def filled(cards: Sequence[CardBytes], sessions: Sequence[int], rows: int) -> int:
    """Bytes that so many sessions of each card fill, with the largest step among them."""
    step = max(min(rows, count) * card.activations for card, count in zip(cards, sessions, strict=True))
    return step + sum(count * card.session for card, count in zip(cards, sessions, strict=True))


def most(memory: Memory, card: CardBytes, rows: int = ROWS) -> int | None:
    """Sessions of a card that has the device to itself; None = its sessions take no memory."""
    there = max(0, room(memory, [card]))
    full = there - rows * card.activations
    if card.session == 0:
        return None if full >= 0 else there // card.activations
    return max(min(rows, there // (card.session + card.activations)), full // card.session)


def slots(memory: Memory, cards: Sequence[CardBytes], asked: int, rows: int = ROWS) -> tuple[int, ...]:
    """Sessions of each card: as many as were asked for, or what fits, one of each card in turn.

    Raises `DoesNotFit` when some card has not even one.
    """
    there, counts = room(memory, cards), [0] * len(cards)
    for _ in range(asked):
        for index in range(len(cards)):
            more = [count + (other == index) for other, count in enumerate(counts)]
            if filled(cards, more, rows) <= there:
                counts = more
    for card, count in zip(cards, counts, strict=True):
        if count == 0:
            raise DoesNotFit(missing(memory, cards, card))
    return tuple(counts)


def fit_together(memory: Memory, cards: Sequence[CardBytes], rows: int = ROWS) -> bool:
    """Whether one session of each fits at once; `memory` is free before any of them is loaded."""
    loaded = memory.less(sum(card.weights for card in cards))
    return not cards or filled(cards, [1] * len(cards), rows) <= room(loaded, cards)


def missing(memory: Memory, cards: Sequence[CardBytes], card: CardBytes) -> str:
    """Why not one session of the card fits beside the others' first ones, in one line."""
    weights = sum(other.weights for other in cards)
    needed = weights + filled(cards, [1] * len(cards), ROWS)
    there = max(0, usable(memory, weights))
    beside = "" if len(cards) == 1 else f" of {len(cards)} cards"
    return (
        f"not one session of '{card.name}' fits: weights{beside} {_gb(weights)}, a step {_gb(card.activations)} and a "
        f"session {_gb(card.session)} need {_gb(needed)}, {_gb(there)} of {_gb(memory.total)} are usable"
    )


def check(card: ModelCard, footprint: Footprint, precision: Precision, total: int, free: int) -> CardBytes:
    """Its bytes, where one session fits a device that has so many free before the card is loaded.

    Raises `DoesNotFit` with what is missing and what would fit.
    """
    counted = card_bytes(card, footprint, precision)
    memory = Memory(total, free).less(counted.weights)
    if most(memory, counted) == 0:
        raise DoesNotFit(f"{missing(memory, [counted], counted)}; {remedies(card, footprint, total)}")
    return counted


def remedies(card: ModelCard, footprint: Footprint, total: int) -> str:
    """What would fit where the default does not: precisions of the recipe, then the smallest device that is known."""
    found = [
        f"--precision {precision}"
        for precision in card.recipe.precisions
        if precision.narrow_kv and most(*_alone(card, footprint, precision, total))
    ]
    default = card.recipe.default.precision
    larger = sorted(DATA_SHEETS.values(), key=lambda sheet: sheet.memory_gb)
    found += [
        f"a device of {sheet.memory_gb} GB ({sheet.title})"
        for sheet in larger
        if sheet.memory_gb * GB > total and most(*_alone(card, footprint, default, sheet.memory_gb * GB))
    ][:1]
    return f"what would fit: {' or '.join(found)}" if found else "no device that is known here would fit"


def _alone(card: ModelCard, footprint: Footprint, precision: Precision, total: int) -> tuple[Memory, CardBytes]:
    counted = card_bytes(card, footprint, precision)
    return empty(total, [counted]), counted


def _gb(count: int) -> str:
    return f"{count / GB:.1f} GB"


def empty(total: int, cards: Sequence[CardBytes]) -> Memory:
    """A device that holds nothing but these cards."""
    return Memory(total, total - sum(card.weights for card in cards))
