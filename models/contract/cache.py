"""Chunk-KV addressing: which ring entries of which slot a step may read, and the one it may write.

    slot s:  ring entries 0 .. ring-1          ring = window + 1, so one entry is always free for staging
             [ 4 | 5 | . | 2 | 3 ]             numbers: chunk index held; '.' = free (staging)
             committed = (3, 4, 0, 1)  oldest -> newest,  staged = 2

    with a sink of 1 and 2 entries for rebuilding (ring 6, window 3): the first chunk is kept for ever, and a chunk may
    stage a rebuilt copy of the others; committing it keeps the sink and puts the rebuilt ones in their place
             [ 0 | 7 | 8 | . | . | . ]         committed = (0, 1, 2)   staged = 3   spare = (4, 5)

Knows no tensors: the family's runtime owns them, the engine's slab pool owns the bookkeeping.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """A card's chunk-KV: `ring` entries per slot of `bytes_per_entry` each.

    `window` of them may be committed, one is staged, `rebuild` more hold the staged copy of rebuilt entries.
    `sink`: the first committed chunks never fall out. `carry_bytes`: what a session keeps beside the ring.
    """

    ring: int
    bytes_per_entry: int
    sink: int = 0
    rebuild: int = 0
    carry_bytes: int = 0

    def __post_init__(self) -> None:
        if self.window < 0 or not 0 <= self.sink <= self.window or self.rebuild < 0:
            raise ValueError(f"ring {self.ring} = window + 1 + rebuild {self.rebuild}, sink {self.sink} <= window")

    @property
    def window(self) -> int:
        return self.ring - 1 - self.rebuild

    @property
    def bytes_per_session(self) -> int:
        return self.ring * self.bytes_per_entry + self.carry_bytes

    def kept(self, committed: tuple[int, ...], rebuilt: tuple[int, ...], staged: tuple[int, ...]) -> tuple[int, ...]:
        """Committed entries after a commit: sink, then rebuilt ones (if any) or the old rest, then staged."""
        sink, rest = committed[: self.sink], committed[self.sink :]
        if rebuilt:
            rest = rebuilt
        every = (*sink, *rest, *staged)
        sink, rest = every[: self.sink], every[self.sink :]
        return (*sink, *rest[max(0, len(rest) - (self.window - len(sink))) :])


@dataclass(frozen=True, slots=True)
class CacheView:
    """One session's slot as one step sees it. Entries are ring positions; `staged` is never in `committed`.

    Where a card's worlds share entries (`LoadedCard.shares`), one of another slot lies before 0 or beyond the ring: see
    `place`.
    `spare`: free entries for rebuilding, as many as the card's `rebuild`. What a step writes into `staged` or `spare`
    stays for the later steps of its chunk (scratch) and outlives the chunk only if a plan said so.
    """

    slot: int
    committed: tuple[int, ...]
    staged: int
    spare: tuple[int, ...] = ()


def place(slot: int, entry: int, ring: int) -> tuple[int, int]:
    """The slot in which an entry of a view lies, and its ring position there."""
    return divmod(slot * ring + entry, ring)
