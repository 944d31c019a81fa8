"""Fingerprint: everything about a run that can change its bits, apart from what it is asked.

Cache keys and snapshots hold it.
"""

from dataclasses import dataclass

from .card import Pixels
from .loaded import LoadedCard


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Two runs of equal fingerprints answer equal asks with equal bits, on the same device type.

    `weights`: digest over every file that was loaded, adapters among them, in their order. `shape`: frames of a chunk,
    height, width; `pixels`: what they are. Each session asks for its own number of denoise steps, so that is no part.
    """

    card: str
    version: str
    weights: str
    recipe: str
    sampler: str
    precision: str
    exact: bool
    shape: tuple[int, int, int]
    pixels: Pixels

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        mode = "exact" if self.exact else "inexact"
        made = f"{self.recipe}/{self.sampler} {self.precision} {mode} {shape} {self.pixels}"
        return f"{self.card}@{self.version} {self.weights} {made}"


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Key of a cached feature: everything that can change it. `component` made it from what hashes to `content`."""

    maker: Fingerprint
    component: str
    content: str


def fingerprint_of(loaded: LoadedCard) -> Fingerprint:
    card, choice, frame = loaded.card, loaded.choice, loaded.card.frame
    return Fingerprint(
        card=card.name,
        version=card.version,
        weights=loaded.weights,
        recipe=card.recipe.name,
        sampler=choice.sampler,
        precision=choice.precision + "-compiled" * choice.compiled + "-invariant" * choice.invariant,
        exact=choice.exact,
        shape=(frame.per_chunk, frame.height, frame.width),
        pixels=frame.pixels,
    )
