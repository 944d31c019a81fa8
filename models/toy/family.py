"""What the catalog sees of the toy: the one family that needs no tensor library, and that has options."""

import time
from pathlib import Path

from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..contract.recipe import RuntimeChoice
from ..family import Family, FamilyOptions
from . import parity
from .card import ToySpec, toy_card
from .loop import ToyCarry, ToyLoop
from .runtime import ToyRuntime


def toy_family(spec: ToySpec) -> Family:
    """The toys that a spec makes."""

    def load(card: ModelCard, choice: RuntimeChoice, _checkpoint: Path | None) -> LoadedCard:
        runtime = ToyRuntime(spec, time.sleep)
        return LoadedCard(card, choice, "none", {CHUNK_ROLLOUT: ToyLoop(spec)}, runtime, ToyCarry, runtime)

    return Family(
        name="toy",
        cards=(toy_card(spec),),
        load=load,
        checks=parity.checks,
        manifest=lambda card: None,
        account=lambda card: None,
        tensors=False,
        options=FamilyOptions(ToySpec, toy_family),
    )


FAMILY = toy_family(ToySpec())
