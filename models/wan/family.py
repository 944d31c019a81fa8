"""What the catalog sees of Wan. Nothing here imports a tensor library before a card is loaded or measured."""

from pathlib import Path

from ..contract.card import ModelCard
from ..contract.footprint import Footprint
from ..contract.loaded import LoadedCard
from ..contract.recipe import RuntimeChoice
from ..family import Family
from ..parity.ladder import ParityCheck
from . import footprint, weights
from .card import SPECS, wan_card


def _load(card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    from .load import load

    return load(SPECS[card.name], card, choice, checkpoint)


def _checks(card: ModelCard) -> tuple[ParityCheck, ...]:
    from .parity.checks import checks

    return checks(SPECS[card.name], card)


def _account(card: ModelCard) -> Footprint:
    return footprint.account(SPECS[card.name])


FAMILY = Family(
    name="wan",
    cards=tuple(wan_card(spec) for spec in SPECS.values()),
    load=_load,
    checks=_checks,
    manifest=lambda card: weights.manifest(SPECS[card.name]),
    account=_account,
)
