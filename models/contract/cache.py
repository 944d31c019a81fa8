"""Chunk-KV addressing: which ring entries of which slot a step may read, and the one it may write.

    slot s:  ring entries 0 .. ring-1          ring = window + 1, so one entry is always free for staging
             [ 4 | 5 | . | 2 | 3 ]             numbers: chunk index held; '.' = free (staging)
             committed = (3, 4, 0, 1)  oldest -> newest,  staged = 2

Knows no tensors: the family's runtime owns them, the engine's slab pool owns the bookkeeping.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """A card's chunk-KV: `ring` entries per slot of `bytes_per_entry` each; window = ring - 1."""

    ring: int
    bytes_per_entry: int

    @property
    def bytes_per_session(self) -> int:
        return self.ring * self.bytes_per_entry


@dataclass(frozen=True, slots=True)
class CacheView:
    """One session's slot as one step sees it. Entries are ring positions; `staged` is never in `committed`."""

    slot: int
    committed: tuple[int, ...]
    staged: int


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Key of a cached feature: everything that can change it."""

    card: str
    weights: str
    component: str
    precision: str
    content: str
