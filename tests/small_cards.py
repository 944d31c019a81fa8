"""One card of every family whose worlds go on from chunk to chunk, small enough for tests, and whoever steers it."""

from collections.abc import Callable

import pytest
from worldroom.engine.device.batch import Batch
from worldroom.models import catalog
from worldroom.models.contract.conditions import PlayerInput
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.family import packed
from worldroom.models.toy.card import ToySpec

SMALL_CARDS = (
    "toy",
    "toy-narrated",
    "toy-duo",
    "drive",
    "dream",
    "wan-tiny-random",
    "matrix-game-tiny-random",
    "waypoint-tiny-random",
    "anyflow-tiny-random",
)


def small_card(name: str) -> LoadedCard:
    """Its toys take no real time."""
    if name.startswith("anyflow"):
        pytest.importorskip("diffusers")
    return catalog.load(name, options=packed(ToySpec(sleeps=False)) if name.startswith("toy") else b"")


def part_of_a_chunk(loaded: LoadedCard) -> Callable[[Batch], float]:
    """What a batch costs: so little that a few worlds are punctual."""
    share = loaded.card.frame.per_chunk / loaded.card.frame.fps / 20

    def cost(batch: Batch) -> float:
        return 0.0 if batch.kind in (StepKind.PROMPT_ENCODE, StepKind.CACHE_IO) else share

    return cost


def steering(loaded: LoadedCard) -> Callable[[int], tuple[float, ...]]:
    """Other controls in every chunk."""
    controls = len(loaded.card.controls)
    return lambda chunk: tuple(float(chunk >> (bit % 3) & 1) for bit in range(controls))


def fellows(loaded: LoadedCard) -> Callable[[int], tuple[PlayerInput, ...]]:
    """The other players, who steer differently."""
    first = steering(loaded)
    return lambda chunk: tuple(PlayerInput(first(chunk + player)) for player in range(1, loaded.card.players))
