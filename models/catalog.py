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
from .drive.card import WEIGHTS, drive_card
from .toy.card import ToySpec, toy_card
from .toy.loop import ToyCarry, ToyLoop
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
    """`load` gets a choice that has passed the recipe, or None: the recipe's default as this device runs it best."""

    card: Callable[[ToySpec], ModelCard]
    load: Callable[[ModelCard, RuntimeChoice | None, ToySpec], LoadedCard]


def _load_toy(made: ModelCard, choice: RuntimeChoice | None, toy: ToySpec) -> LoadedCard:
    runtime = ToyRuntime(toy, time.sleep)
    return LoadedCard(made, choice or made.recipe.default, "none", ToyLoop(toy), runtime, ToyCarry, runtime)


def _load_drive(_made: ModelCard, choice: RuntimeChoice | None, _toy: ToySpec) -> LoadedCard:
    from .drive.load import load_drive

    return load_drive(WEIGHTS, choice)


_CARDS: Mapping[str, _Entry] = {
    "toy": _Entry(toy_card, _load_toy),
    "drive": _Entry(lambda _toy: drive_card(), _load_drive),
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
    if choice is not None:
        made.recipe.check(choice)
    return entry.load(made, choice, spec)


def _entry(name: str) -> _Entry:
    if name not in _CARDS:
        raise UnknownCard(name, names())
    return _CARDS[name]
