"""What the catalog sees of Wan. Nothing here imports a tensor library before a card is loaded or measured.

Options of its cards (`serve --option decoder=tiny`): which decoder makes the pictures, and whether weights are drawn.
"""

from dataclasses import replace
from pathlib import Path

import msgspec

from ..contract.card import ModelCard
from ..contract.footprint import Footprint
from ..contract.loaded import LoadedCard
from ..contract.recipe import RuntimeChoice
from ..family import Family, FamilyOptions
from ..parity.ladder import ParityCheck
from . import footprint, weights
from .card import SPECS, wan_card
from .spec import Decoder, WanSpec


class WanOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`decoder` None = the card's own; TINY makes pictures in a fraction of the time, less exactly. `drawn`: weights of
    the published size from a seed, to measure a device without a download.
    """

    decoder: Decoder | None = None
    drawn: bool = False

    def of(self, spec: WanSpec) -> WanSpec:
        return replace(spec, decoder=self.decoder or spec.decoder, drawn=self.drawn and not spec.random)


def wan_family(options: WanOptions) -> Family:
    """The cards as those options make them."""
    specs = {name: options.of(spec) for name, spec in SPECS.items()}

    def load(card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
        from .load import load

        return load(specs[card.name], card, choice, checkpoint)

    def checks(card: ModelCard) -> tuple[ParityCheck, ...]:
        from .parity.checks import checks

        return checks(specs[card.name], card)

    def account(card: ModelCard) -> Footprint:
        return footprint.account(specs[card.name])

    return Family(
        name="wan",
        cards=tuple(wan_card(spec) for spec in specs.values()),
        load=load,
        checks=checks,
        manifest=lambda card: weights.manifest(specs[card.name]),
        account=account,
        options=FamilyOptions(WanOptions, wan_family),
    )


FAMILY = wan_family(WanOptions())
