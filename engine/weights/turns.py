"""Cards that share a device take turns: the books of what lies there, and what has to go so that a card can be served.

    awake    all components and slots are there: sessions may come       pinned    it is lived in, or in use: it stays
    going    slots first, then component by component in its own order   (the transformer before encoders and decoders)

    weights that are there + slots x a session, of all cards + the largest step of those that have slots  <=  budget

Cards that all fit together are all awake for good. Pure: bytes and names.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...models.holding import CardBytes


@dataclass(slots=True)
class CardTurn:
    """One card. `components`: bytes by name, in the order of going; `there`: those on the device. `fixed`: weights that
    cannot go. `slots`: that it has there, of those `asked` for.
    """

    bytes: CardBytes
    components: Mapping[str, int]
    fixed: int
    asked: int
    there: set[str] = field(default_factory=set)
    slots: int = 0

    @property
    def name(self) -> str:
        return self.bytes.name

    @property
    def awake(self) -> bool:
        return self.slots > 0 and len(self.there) == len(self.components)

    @property
    def away(self) -> tuple[str, ...]:
        return tuple(name for name in self.components if name not in self.there)

    @property
    def weights(self) -> int:
        """Bytes that are there."""
        return self.fixed + sum(self.components[name] for name in self.there)

    def step(self, rows: int) -> int:
        """Activations of its largest batch."""
        return min(rows, self.slots) * self.bytes.activations

    def whole(self, slots: int) -> "CardTurn":
        """As it would be, awake with so many slots."""
        return replace(self, there={*self.components}, slots=slots)


@dataclass(frozen=True, slots=True)
class Leaving:
    """A card's slots go (`component` None), or one of its components."""

    card: str
    component: str | None


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """What has to go, in this order, and the slots that the card may have then."""

    leaving: tuple[Leaving, ...]
    slots: int


class CardTurns:
    """`rows`: of one batch at most. The card that was used longest ago goes first."""

    def __init__(self, cards: Collection[CardTurn], budget: int, rows: int) -> None:
        self.cards = {card.name: card for card in cards}
        self.budget, self._rows = budget, rows

    @property
    def used(self) -> int:
        return self.bytes(self.cards.values())

    @property
    def all_fit(self) -> bool:
        """Nobody has to go, ever."""
        return self.bytes([card.whole(card.asked) for card in self.cards.values()]) <= self.budget

    def missing(self, card: str) -> int:
        """Bytes that have yet to come until a first session of the card fits."""
        turn = self.cards[card]
        return sum(turn.components[name] for name in turn.away) + (0 if turn.slots else turn.bytes.session)

    def touch(self, card: str) -> None:
        """It is used now."""
        self.cards[card] = self.cards.pop(card)

    def turn_of(self, card: str, pinned: Collection[str]) -> TurnPlan | None:
        """How the card would come in beside those that are pinned; None = it would not, with a single session."""
        trial = {name: replace(other, there={*other.there}) for name, other in self.cards.items()}
        asked, leaving = trial[card].asked, []
        for leave in self._could_leave(card, pinned):
            if self._fits(trial, card, asked):
                break
            self.left(leave, trial)
            leaving.append(leave)
        slots = next((count for count in range(asked, 0, -1) if self._fits(trial, card, count)), 0)
        return TurnPlan(tuple(leaving), slots) if slots else None

    def in_the_way(self, card: str, pinned: Collection[str]) -> tuple[str, ...]:
        """Pinned cards without which the card could come in, none of them too many; () = it can now."""
        if self.cards[card].awake:
            return ()
        stay = [name for name in self.cards if name in pinned and name != card]
        going: list[str] = []
        while stay and self.turn_of(card, stay) is None:
            going.append(stay.pop(0))
        for name in [*going]:
            if self.turn_of(card, [*stay, name]) is not None:
                going.remove(name)
                stay.append(name)
        return tuple(going)

    def together(self, one: str, other: str) -> bool:
        """Whether both could be awake at once."""
        first = self.cards[one]
        resident = first if first.awake else first.whole(1)
        rest = [replace(card, there=set(), slots=0) for name, card in self.cards.items() if name not in (one, other)]
        return self.bytes([resident, self.cards[other].whole(1), *rest]) <= self.budget

    def left(self, leave: Leaving, cards: Mapping[str, CardTurn] | None = None) -> None:
        """It is gone."""
        card = (self.cards if cards is None else cards)[leave.card]
        if leave.component is None:
            card.slots = 0
        else:
            card.there.discard(leave.component)

    def _could_leave(self, card: str, pinned: Collection[str]) -> Iterator[Leaving]:
        for name, other in self.cards.items():
            if name == card or name in pinned:
                continue
            if other.slots:
                yield Leaving(name, None)
            yield from (Leaving(name, component) for component in other.components if component in other.there)

    def _fits(self, cards: Mapping[str, CardTurn], card: str, slots: int) -> bool:
        others = (other for name, other in cards.items() if name != card)
        return self.bytes([*others, cards[card].whole(slots)]) <= self.budget

    def bytes(self, cards: Collection[CardTurn]) -> int:
        """That these fill together."""
        step = max((card.step(self._rows) for card in cards), default=0)
        return step + sum(card.weights + card.slots * card.bytes.session for card in cards)
