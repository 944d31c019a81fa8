"""Family: what one model folder offers the catalog. Building it imports no tensor library; its functions may.

Every family has the same folder: card, networks, loop, runtime, golden, parity, and `family.py` that ties them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .checkpoints.manifest import Manifest
from .contract.card import ModelCard
from .contract.footprint import Footprint
from .contract.loaded import LoadedCard
from .contract.recipe import RuntimeChoice
from .parity.ladder import ParityCheck


@dataclass(frozen=True, slots=True)
class Family:
    """`load`: a card made ready from a checkpoint's root (None for cards that carry or draw their weights).

    `manifest` and `account` are None for cards that have nothing to pull or to count. `checks`: the card's checks.
    `tensors`: loading a card imports torch, so a worker that waits for its turn does it ahead.
    """

    name: str
    cards: tuple[ModelCard, ...]
    load: Callable[[ModelCard, RuntimeChoice, Path | None], LoadedCard]
    checks: Callable[[ModelCard], tuple[ParityCheck, ...]]
    manifest: Callable[[ModelCard], Manifest | None]
    account: Callable[[ModelCard], Footprint | None]
    tensors: bool = True
