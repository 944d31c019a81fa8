"""Matrix-Game as the catalog sees it. Torch is imported when a card is loaded or climbed."""

from pathlib import Path

from ..checkpoints.manifest import Manifest
from ..contract.card import ModelCard
from ..contract.footprint import Footprint
from ..contract.loaded import LoadedCard
from ..contract.recipe import RuntimeChoice
from ..family import Family
from ..parity.ladder import ParityCheck
from . import footprint
from .card import matrix_game_card
from .spec import SPECS
from .weights import manifest


def _load(card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    from .load import load

    return load(SPECS[card.name], card, choice, checkpoint)


def _checks(card: ModelCard) -> tuple[ParityCheck, ...]:
    from .parity import matrix_game_checks

    return matrix_game_checks(SPECS[card.name])


def _manifest(card: ModelCard) -> Manifest | None:
    return manifest(SPECS[card.name])


def _account(card: ModelCard) -> Footprint:
    return footprint.account(SPECS[card.name])


FAMILY = Family(
    name="matrix_game",
    cards=tuple(matrix_game_card(spec) for spec in SPECS.values()),
    load=_load,
    checks=_checks,
    manifest=_manifest,
    account=_account,
)
