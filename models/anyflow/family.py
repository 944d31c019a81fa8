"""AnyFlow as the catalog sees it. Diffusers and torch are imported when a card is loaded or climbed."""

from collections.abc import Iterator
from pathlib import Path

from ..checkpoints.manifest import Manifest
from ..contract.card import ModelCard
from ..contract.footprint import Footprint
from ..contract.loaded import LoadedCard
from ..contract.recipe import RuntimeChoice
from ..family import Family
from ..parity.ladder import Pair, ParityCheck, ParityLevel, ParityMissing
from . import footprint
from .card import anyflow_card
from .spec import SPECS
from .weights import manifest


def _load(card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    try:
        from .load import load
    except ImportError as error:
        raise ImportError(
            f"card '{card.name}' needs diffusers: pip install 'worldroom[diffusers]' ({error})"
        ) from error

    return load(SPECS[card.name], card, choice, checkpoint)


def _checks(card: ModelCard) -> tuple[ParityCheck, ...]:
    """Without diffusers one check stands for all: it is skipped and says why."""
    try:
        from .parity import anyflow_checks
    except ImportError as error:
        reason = f"diffusers is not installed ({error})"

        def missing() -> Iterator[Pair]:
            raise ParityMissing(reason)

        return (ParityCheck(ParityLevel.C1, "rollout against AnyFlowFARPipeline", 0.0, missing),)

    return anyflow_checks(SPECS[card.name])


def _manifest(card: ModelCard) -> Manifest | None:
    return manifest(SPECS[card.name])


def _account(card: ModelCard) -> Footprint:
    return footprint.account(SPECS[card.name])


FAMILY = Family(
    name="anyflow",
    cards=tuple(anyflow_card(spec) for spec in SPECS.values()),
    load=_load,
    checks=_checks,
    manifest=_manifest,
    account=_account,
)
