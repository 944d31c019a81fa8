"""What the catalog sees of the toy. The one family that needs no tensor library, and whose card takes a spec."""

import time
from pathlib import Path

from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..contract.recipe import RuntimeChoice
from ..family import Family
from . import parity
from .card import ToySpec, toy_card
from .loop import ToyCarry, ToyLoop
from .runtime import ToyRuntime


def load_toy(spec: ToySpec, choice: RuntimeChoice | None = None) -> LoadedCard:
    """The toy that a spec makes; `choice` None = the recipe's default."""
    card, runtime = toy_card(spec), ToyRuntime(spec, time.sleep)
    return LoadedCard(
        card, choice or card.recipe.default, "none", {CHUNK_ROLLOUT: ToyLoop(spec)}, runtime, ToyCarry, runtime
    )


def _load(_card: ModelCard, choice: RuntimeChoice, _checkpoint: Path | None) -> LoadedCard:
    return load_toy(ToySpec(), choice)


FAMILY = Family(
    name="toy",
    cards=(toy_card(ToySpec()),),
    load=_load,
    checks=parity.checks,
    manifest=lambda card: None,
    account=lambda card: None,
    tensors=False,
)
