"""What the catalog sees of Wan. Nothing here imports a tensor library before a card is loaded or measured."""

from pathlib import Path

from ..contract.account import Account
from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.recipe import RuntimeChoice
from ..family import Family
from ..parity.ladder import Trial
from . import account, weights
from .card import SPECS, wan_card


def _load(card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    from .load import load

    return load(SPECS[card.name], card, choice, checkpoint)


def _trials(card: ModelCard) -> tuple[Trial, ...]:
    from .parity.trials import trials

    return trials(SPECS[card.name], card)


def _account(card: ModelCard) -> Account:
    return account.account(SPECS[card.name])


FAMILY = Family(
    name="wan",
    cards=tuple(wan_card(spec) for spec in SPECS.values()),
    load=_load,
    trials=_trials,
    manifest=lambda card: weights.manifest(SPECS[card.name]),
    account=_account,
)
