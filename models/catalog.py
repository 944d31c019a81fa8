"""The cards this program has, by name, and how each is made ready on a device.

The one place that knows families by name. A family's tensor library is imported when its card is loaded, so a
server of the toy alone starts without it. The toy's card takes a spec; nothing else tells one family from another.
"""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from .anyflow.family import FAMILY as ANYFLOW
from .contract.card import ModelCard
from .contract.footprint import Footprint
from .contract.loaded import LoadedCard
from .contract.recipe import RuntimeChoice
from .drive.family import FAMILY as DRIVE
from .family import Family
from .matrix_game.family import FAMILY as MATRIX_GAME
from .parity.ladder import ParityCheck
from .toy.card import ToySpec, toy_card
from .toy.family import FAMILY as TOY
from .toy.family import load_toy
from .wan.family import FAMILY as WAN
from .waypoint.family import FAMILY as WAYPOINT


class UnknownCard(LookupError):
    """No card of that name; `suggestion` is the nearest one, if any is near."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        near = difflib.get_close_matches(name.lower(), known, n=1)
        self.name, self.known, self.suggestion = name, known, near[0] if near else None
        hint = f"did you mean '{near[0]}'?" if near else f"cards are {', '.join(known)}"
        super().__init__(f"no card '{name}': {hint}")


_FAMILIES: tuple[Family, ...] = (TOY, DRIVE, WAN, ANYFLOW, MATRIX_GAME, WAYPOINT)
_FAMILY_OF: Mapping[str, tuple[Family, ModelCard]] = {
    card.name: (family, card) for family in _FAMILIES for card in family.cards
}


def names() -> tuple[str, ...]:
    return tuple(_FAMILY_OF)


def random_weights() -> tuple[str, ...]:
    """Cards with random weights: every family's loops and steps in small, without a download."""
    return tuple(name for name, (_, card) in _FAMILY_OF.items() if card.random_weights)


def family(name: str) -> tuple[Family, ModelCard]:
    """The folder behind a card, and the card; raises `UnknownCard`."""
    if name not in _FAMILY_OF:
        raise UnknownCard(name, names())
    return _FAMILY_OF[name]


def checks(name: str, slow: bool = False) -> tuple[ParityCheck, ...]:
    """The checks of a card's parity ladder, slow ones when they are asked for; raises `UnknownCard`."""
    owner, made = family(name)
    return tuple(check for check in owner.checks(made) if slow or not check.slow)


def account(name: str) -> Footprint | None:
    """Bytes and FLOPs of a card, None for one without weights; raises `UnknownCard` or `WeightsError`.

    A card that carries its weights is counted by running it.
    """
    owner, made = family(name)
    return owner.account(made)


def card(name: str, toy: ToySpec | None = None) -> ModelCard:
    """The card's data alone; raises `UnknownCard`."""
    owner, made = family(name)
    return toy_card(toy) if owner is TOY and toy is not None else made


def prepare(names: Sequence[str]) -> None:
    """Import what loading these cards takes longest for; a name that is no card is for `load` to refuse."""
    if any(_FAMILY_OF[name][0].tensors for name in names if name in _FAMILY_OF):
        import torch  # noqa: F401


def load(
    name: str, choice: RuntimeChoice | None = None, toy: ToySpec | None = None, checkpoint: Path | None = None
) -> LoadedCard:
    """Make a card ready. `choice` None = the recipe's default; `toy` concerns the toy card alone.

    `checkpoint`: root of published weights, for cards that neither carry nor draw theirs.

    Raises `UnknownCard`, `RecipeMismatch` before any weight is read, or `WeightsError`.
    """
    owner, made = family(name)
    if choice is not None:
        made.recipe.check(choice)
    if owner is TOY and toy is not None:
        return load_toy(toy, choice)
    return owner.load(made, choice or made.recipe.default, checkpoint)
