"""The cards this program has, by name, and how each is made ready on a device.

The one place that knows families by name. A family's tensor library is imported when its card is loaded, so a
server of the toy alone starts without it.
"""

import difflib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .anyflow.family import FAMILY as ANYFLOW
from .contract.account import Account
from .contract.card import ModelCard
from .contract.loaded import LoadedCard
from .contract.recipe import RuntimeChoice
from .drive.card import WEIGHTS, drive_card
from .family import Family
from .matrix_game.family import FAMILY as MATRIX_GAME
from .parity.ladder import Trial
from .toy.card import ToySpec, toy_card
from .toy.loop import ToyCarry, ToyLoop
from .toy.parity import toy_trials
from .toy.runtime import ToyRuntime
from .wan.family import FAMILY as WAN
from .waypoint.family import FAMILY as WAYPOINT


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
    trials: Callable[[], tuple[Trial, ...]]
    account: Callable[[], Account | None]


def _load_toy(made: ModelCard, choice: RuntimeChoice | None, toy: ToySpec) -> LoadedCard:
    runtime = ToyRuntime(toy, time.sleep)
    return LoadedCard(made, choice or made.recipe.default, "none", ToyLoop(toy), runtime, ToyCarry, runtime)


def _load_drive(_made: ModelCard, choice: RuntimeChoice | None, _toy: ToySpec) -> LoadedCard:
    from .drive.load import load_drive

    return load_drive(WEIGHTS, choice)


def _drive_trials() -> tuple[Trial, ...]:
    from .drive.parity import drive_trials

    return drive_trials()


def _drive_account() -> Account:
    from .drive.account import account

    return account()


_CARDS: Mapping[str, _Entry] = {
    "toy": _Entry(toy_card, _load_toy, toy_trials, lambda: None),
    "drive": _Entry(lambda _toy: drive_card(), _load_drive, _drive_trials, _drive_account),
}
_FAMILIES: tuple[Family, ...] = (WAN, ANYFLOW, MATRIX_GAME, WAYPOINT)
_FAMILY_OF: Mapping[str, tuple[Family, ModelCard]] = {
    card.name: (family, card) for family in _FAMILIES for card in family.cards
}


def names() -> tuple[str, ...]:
    return (*_CARDS, *_FAMILY_OF)


def drawn() -> tuple[str, ...]:
    """Cards with drawn weights: every family's loops and steps in small, without a download."""
    return tuple(name for name, (_, card) in _FAMILY_OF.items() if card.drawn)


def family(name: str) -> tuple[Family, ModelCard] | None:
    """The family folder behind a card, None for the cards that carry their own weights; raises `UnknownCard`."""
    if name in _CARDS:
        return None
    return _member(name)


def trials(name: str, slow: bool = False) -> tuple[Trial, ...]:
    """The rungs of a card's parity ladder, slow ones when they are asked for; raises `UnknownCard`."""
    if name in _CARDS:
        every = _CARDS[name].trials()
    else:
        owner, made = _member(name)
        every = owner.trials(made)
    return tuple(trial for trial in every if slow or not trial.slow)


def account(name: str) -> Account | None:
    """Bytes and FLOPs of a card, None for one without weights; raises `UnknownCard` or `WeightsError`.

    A card that carries its weights is counted by running it.
    """
    if name in _CARDS:
        return _CARDS[name].account()
    owner, made = _member(name)
    return owner.account(made)


def card(name: str, toy: ToySpec | None = None) -> ModelCard:
    """The card's data alone; raises `UnknownCard`."""
    return _CARDS[name].card(toy or ToySpec()) if name in _CARDS else _member(name)[1]


def load(
    name: str, choice: RuntimeChoice | None = None, toy: ToySpec | None = None, checkpoint: Path | None = None
) -> LoadedCard:
    """Make a card ready. `choice` None = the recipe's default; `toy` concerns the toy card alone.

    `checkpoint`: root of published weights, for cards that neither carry nor draw theirs.

    Raises `UnknownCard`, `RecipeMismatch` before any weight is read, or `WeightsError`.
    """
    spec = toy or ToySpec()
    made = card(name, spec)
    if choice is not None:
        made.recipe.check(choice)
    if name in _CARDS:
        return _CARDS[name].load(made, choice, spec)
    return _member(name)[0].load(made, choice or made.recipe.default, checkpoint)


def _member(name: str) -> tuple[Family, ModelCard]:
    if name not in _FAMILY_OF:
        raise UnknownCard(name, names())
    return _FAMILY_OF[name]
