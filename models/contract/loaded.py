"""A card made ready on a device: what `models/catalog.py` hands to the engine."""

from dataclasses import dataclass
from typing import Any

from .card import ModelCard
from .loop import Loop, Runtime
from .recipe import RuntimeChoice


@dataclass(frozen=True, slots=True)
class LoadedCard:
    """The (recipe, runtime) pair: `choice` has passed `card.recipe.check`, `weights` is a digest of the weight files.

    Row, result, state and carry types are the family's own; the engine only passes them on.
    """

    card: ModelCard
    choice: RuntimeChoice
    weights: str
    loop: Loop[Any, Any, Any, Any]
    runtime: Runtime[Any, Any]
