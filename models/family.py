"""Family: what one model folder offers the catalog. Building it imports no tensor library; its functions may.

Every family has the same files where it has such a part: spec, card, networks, loop, runtime, weights, golden, parity,
footprint, and `family.py` that ties them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from .checkpoints.manifest import Manifest
from .contract.card import ModelCard
from .contract.footprint import Footprint
from .contract.loaded import LoadedCard
from .contract.recipe import RuntimeChoice
from .parity.ladder import ParityCheck


class BadOption(ValueError):
    """An option that a family does not have, or that it does not take with this value."""


@dataclass(frozen=True, slots=True)
class FamilyOptions:
    """What may be set about a family's cards when a server starts. Options travel to a worker as one blob.

    `kind`: a frozen struct whose fields all have defaults. `made`: the family that such a struct makes.
    """

    kind: type[msgspec.Struct]
    made: "Callable[[Any], Family]"

    def read(self, blob: bytes) -> msgspec.Struct:
        """Raises `BadOption`."""
        try:
            return msgspec.msgpack.decode(blob, type=self.kind)
        except (msgspec.MsgspecError, ValueError) as error:
            raise BadOption(str(error)) from error


@dataclass(frozen=True, slots=True)
class Family:
    """`load`: a card made ready from a checkpoint's root (None for cards that carry or draw their weights).

    `manifest` and `account` are None for cards that have nothing to pull or to count. `checks`: those of the card's
    parity ladder. `tensors`: loading a card imports torch, so a worker that waits for its turn does it ahead.
    """

    name: str
    cards: tuple[ModelCard, ...]
    load: Callable[[ModelCard, RuntimeChoice, Path | None], LoadedCard]
    checks: Callable[[ModelCard], tuple[ParityCheck, ...]]
    manifest: Callable[[ModelCard], Manifest | None]
    account: Callable[[ModelCard], Footprint | None]
    tensors: bool = True
    options: FamilyOptions | None = None

    def with_options(self, blob: bytes) -> "Family":
        """The family as those options make it; b'' = as it is. Raises `BadOption`."""
        if not blob:
            return self
        if self.options is None:
            raise BadOption(f"family '{self.name}' has no options")
        made: Family = self.options.made(self.options.read(blob))
        return made

    def card(self, name: str) -> ModelCard:
        return next(card for card in self.cards if card.name == name)


def packed(options: msgspec.Struct) -> bytes:
    """Options on their way to a worker."""
    return msgspec.msgpack.encode(options)


def parsed(family: Family, given: Mapping[str, str]) -> bytes:
    """Options as a person types them, packed; b'' for none. Raises `BadOption` with those there are."""
    if not given:
        return b""
    if family.options is None:
        raise BadOption(f"family '{family.name}' has no options")
    known = {field.name: field for field in msgspec.structs.fields(family.options.kind)}
    if unknown := sorted(set(given) - set(known)):
        raise BadOption(f"family '{family.name}' has no option {', '.join(unknown)}: there are {', '.join(known)}")
    try:
        return packed(msgspec.convert(dict(given), family.options.kind, strict=False))
    except (msgspec.ValidationError, ValueError) as error:
        raise BadOption(f"options of family '{family.name}': {error}") from error
