"""What the catalog sees of the toy: the one family that needs no tensor library, and that has options."""

import time
from pathlib import Path

from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.recipe import RuntimeChoice
from ..family import Family, FamilyOptions
from . import parity
from .card import ToySpec, clip_card, duo_card, narrated_card, toy_card
from .clip import ToyClipCarry, ToyClipLoop, ToyClipRuntime, ToyClipState
from .load import toy_loaded
from .runtime import ToyRuntime


def toy_family(spec: ToySpec) -> Family:
    """The toys that a spec makes."""

    def load(card: ModelCard, choice: RuntimeChoice, _checkpoint: Path | None) -> LoadedCard:
        if card.name == "toy-clip":
            loops, runtime = {card.main_loop: ToyClipLoop()}, ToyClipRuntime(spec, time.sleep)
            return LoadedCard(card, choice, "none", loops, runtime, ToyClipCarry, state=ToyClipState)
        return toy_loaded(card, choice, ToyRuntime(spec, time.sleep))

    return Family(
        name="toy",
        cards=(toy_card(spec), narrated_card(spec), duo_card(spec), clip_card(spec)),
        load=load,
        checks=parity.checks,
        manifest=lambda card: None,
        account=lambda card: None,
        tensors=False,
        options=FamilyOptions(ToySpec, toy_family),
    )


FAMILY = toy_family(ToySpec())
