"""What the catalog sees of `drive`. Nothing here imports a tensor library before the card is loaded or measured."""

from pathlib import Path

from ..contract.card import ModelCard
from ..contract.footprint import Footprint
from ..contract.loaded import LoadedCard
from ..contract.recipe import RuntimeChoice
from ..family import Family
from ..parity.ladder import ParityCheck
from .card import WEIGHTS, drive_card


def _load(_card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    """The choice says which card it is: one that need not be exact owes the recipe's tolerance."""
    from .load import load_drive

    return load_drive(checkpoint or WEIGHTS, choice)


def _checks(_card: ModelCard) -> tuple[ParityCheck, ...]:
    from .parity import checks

    return checks()


def _account(_card: ModelCard) -> Footprint:
    from .footprint import account

    return account()


FAMILY = Family(
    name="drive",
    cards=(drive_card(),),
    load=_load,
    checks=_checks,
    manifest=lambda card: None,
    account=_account,
)
