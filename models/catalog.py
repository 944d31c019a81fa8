"""The cards this program has, by name, and how each is made ready on a device.

The one place that knows families by name. A family's tensor library is imported when its card is loaded, so a
server of the toy alone starts without it.
"""

import difflib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .contract.card import ModelCard
from .contract.loaded import LoadedCard
from .contract.recipe import RuntimeChoice
from .toy.card import ToySpec, toy_card
from .toy.loop import ToyLoop
from .toy.runtime import ToyRuntime


class UnknownCard(LookupError):
    """No card of that name; `suggestion` is the nearest one, if any is near."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        near = difflib.get_close_matches(name.lower(), known, n=1)
        self.name, self.known, self.suggestion = name, known, near[0] if near else None
        hint = f"did you mean '{near[0]}'?" if near else f"cards are {', '.join(known)}"
        super().__init__(f"no card '{name}': {hint}")


@dataclass(frozen=True, slots=True)
class _Entry:
    card: Callable[[ToySpec], ModelCard]
    load: Callable[[ModelCard, RuntimeChoice, ToySpec], LoadedCard]


def _load_toy(card: ModelCard, choice: RuntimeChoice, toy: ToySpec) -> LoadedCard:
    return LoadedCard(card, choice, "none", ToyLoop(toy), ToyRuntime(toy, time.sleep))


_CARDS: Mapping[str, _Entry] = {
    "toy": _Entry(toy_card, _load_toy),
}


def names() -> tuple[str, ...]:
    return tuple(_CARDS)


def card(name: str, toy: ToySpec | None = None) -> ModelCard:
    """The card's data alone; raises `UnknownCard`."""
    return _entry(name).card(toy or ToySpec())


def load(name: str, choice: RuntimeChoice | None = None, toy: ToySpec | None = None) -> LoadedCard:
    """Make a card ready. `choice` None = the recipe's default; `toy` concerns the toy card alone.

    Raises `UnknownCard`, `RecipeMismatch` before any weight is read, or `WeightsError`.
    """
    spec = toy or ToySpec()
    entry = _entry(name)
    made = entry.card(spec)
    chosen = choice or made.recipe.default
    made.recipe.check(chosen)
    return entry.load(made, chosen, spec)


def _entry(name: str) -> _Entry:
    if name not in _CARDS:
        raise UnknownCard(name, names())
    return _CARDS[name]
