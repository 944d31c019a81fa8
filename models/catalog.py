"""The cards this program has, by name, and how each is made ready on a device.

The one place that knows its own families by name; those of other packages come through `plugins.py`. A family's tensor
library is imported when its card is loaded, so a server of the toy alone starts without it.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from . import plugins
from .anyflow.family import FAMILY as ANYFLOW
from .contract.card import ModelCard
from .contract.faults import CardFault, FamilyFault
from .contract.footprint import Footprint
from .contract.loaded import LoadedCard
from .contract.recipe import RecipeMismatch, RuntimeChoice
from .dream.family import FAMILY as DREAM
from .drive.family import FAMILY as DRIVE
from .family import BadOption, Family, parsed
from .matrix_game.family import FAMILY as MATRIX_GAME
from .parity.ladder import ParityCheck
from .toy.family import FAMILY as TOY
from .wan.family import FAMILY as WAN
from .waypoint.family import FAMILY as WAYPOINT


class UnknownCard(LookupError):
    """No card of that name; `suggestion` is the nearest one, if any is near."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        near = difflib.get_close_matches(name.lower(), known, n=1)
        self.name, self.known, self.suggestion = name, known, near[0] if near else None
        hint = f"did you mean '{near[0]}'?" if near else f"cards are {', '.join(known)}"
        super().__init__(f"no card '{name}': {hint}")


REFUSALS = (UnknownCard, RecipeMismatch, CardFault, FamilyFault, BadOption)
"""What the person who asked for a card can put right; one line each."""

_OWN: tuple[Family, ...] = (TOY, DRIVE, DREAM, WAN, ANYFLOW, MATRIX_GAME, WAYPOINT)
_OWNER: Mapping[str, Family] = {card.name: family for family in _OWN for card in family.cards}


def families() -> tuple[Family, ...]:
    """Its own, then those of other packages."""
    return (*_OWN, *_found().families)


def _found() -> plugins.Plugins:
    return plugins.find(tuple(_OWNER))


def _cards() -> tuple[ModelCard, ...]:
    return tuple(card for family in families() for card in family.cards)


def names() -> tuple[str, ...]:
    return tuple(card.name for card in _cards())


def random_weights() -> tuple[str, ...]:
    """Cards with random weights: every family's loops and steps in small, without a download."""
    return tuple(card.name for card in _cards() if card.random_weights)


def family(name: str, options: bytes = b"") -> tuple[Family, ModelCard]:
    """The family behind a card, and the card, both as `options` make them.

    Raises `UnknownCard`, `FamilyFault` for a package that cannot be used, or `BadOption`.
    """
    owner = _OWNER.get(name) or _foreign(name)
    owner = owner.with_options(options)
    return owner, owner.card(name)


def _foreign(name: str) -> Family:
    found = _found()
    for owner in found.families:
        if any(card.name == name for card in owner.cards):
            return owner
    if name in found.faults:
        raise found.faults[name]
    raise UnknownCard(name, names())


def options(name: str, given: Mapping[str, str]) -> bytes:
    """Options of a card's family as a person types them, packed; raises what `family` raises."""
    return parsed(family(name)[0], given)


def checks(name: str, slow: bool = False) -> tuple[ParityCheck, ...]:
    """The checks of a card's parity ladder, slow ones when they are asked for; raises `UnknownCard`."""
    owner, made = family(name)
    return tuple(check for check in owner.checks(made) if slow or not check.slow)


def account(name: str, options: bytes = b"") -> Footprint | None:
    """Bytes and FLOPs of a card, None for one without weights; raises what `family` raises, or `WeightsError`.

    A card that carries its weights is counted by running it.
    """
    owner, made = family(name, options)
    return owner.account(made)


def counted(name: str, options: bytes = b"") -> Footprint | None:
    """The account of a card whose published weights are counted by arithmetic, None for all others."""
    owner, made = family(name, options)
    return None if owner.manifest(made) is None or made.random_weights else owner.account(made)


def card(name: str, options: bytes = b"") -> ModelCard:
    """The card's data alone; raises what `family` raises."""
    return family(name, options)[1]


def prepare(names: Sequence[str]) -> None:
    """Import what loading these cards takes longest for; a name that is no card is for `load` to refuse."""
    if any(_OWNER[name].tensors for name in names if name in _OWNER):
        import torch  # noqa: F401


def load(
    name: str, choice: RuntimeChoice | None = None, checkpoint: Path | None = None, options: bytes = b""
) -> LoadedCard:
    """Make a card ready. `choice` None = the recipe's default; `options`: of its family, packed.

    `checkpoint`: root of published weights, for cards that neither carry nor draw theirs.

    Raises what `family` raises, `RecipeMismatch` before any weight is read, `CardFault` or `WeightsError`.
    """
    owner, made = family(name, options)
    if choice is not None:
        made.recipe.check(choice)
    loaded: object = owner.load(made, choice or made.recipe.default, checkpoint)
    if not isinstance(loaded, LoadedCard):
        raise FamilyFault(owner.name, f"its load returned a {type(loaded).__name__}, a LoadedCard is needed")
    return replace(loaded, footprint=counted(name, options))
