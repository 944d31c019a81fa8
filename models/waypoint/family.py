"""Waypoint as the catalog sees it. Torch is imported when a card is loaded or climbed."""

from pathlib import Path

from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.recipe import RuntimeChoice
from ..family import Family
from ..parity.ladder import ParityCheck
from .card import waypoint_card
from .spec import SPECS


def _load(card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    from .load import load

    return load(SPECS[card.name], card, choice, checkpoint)


def _checks(card: ModelCard) -> tuple[ParityCheck, ...]:
    from .parity import waypoint_checks

    return waypoint_checks(SPECS[card.name])


def _nothing(card: ModelCard) -> None:
    """No manifest and no account: names of tensors and most widths are not public."""


FAMILY = Family(
    name="waypoint",
    cards=tuple(waypoint_card(spec) for spec in SPECS.values()),
    load=_load,
    checks=_checks,
    manifest=_nothing,
    account=_nothing,
)
