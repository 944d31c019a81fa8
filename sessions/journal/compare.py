"""Chunks that were made again against those that were recorded: bit for bit, or within what the card owes.

    digest equal ------------------------------------------------> the same
    else, an exact card -----------------------------------------> a mismatch
    else, latents of the recorded one kept: error <= tolerance? --> within it, or a mismatch
    else --------------------------------------------------------> the next kept one of that epoch vouches for it

A chunk starts from the one before, so an error that grows beyond the tolerance shows in the next kept one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ...engine import api

KeptLatents = Callable[[str], Awaitable[bytes | None]]
"""What was kept under a digest, a .npy file; None = nothing."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """`error`: as a share of the range of the recorded latents; None where bits alone count."""

    epoch: int
    chunk: int
    recorded: str
    replayed: str
    error: float | None = None


async def _nothing(digest: str) -> bytes | None:
    return None


@dataclass(slots=True)
class Comparison:
    """`tolerance`: what the card owes, 0 = every bit. `every`: so many chunks apart latents were kept. `within`: chunks
    with other bits whose error is allowed; `largest`: the largest of those.
    """

    tolerance: float
    every: int
    kept: KeptLatents = _nothing
    mismatches: list[Mismatch] = field(default_factory=list)
    within: int = 0
    largest: float = 0.0
    _open: dict[int, int] = field(default_factory=dict)
    """By epoch: chunks with other bits since the last one that was judged."""

    @property
    def wants_latents(self) -> bool:
        """Whether chunks have to bring theirs."""
        return self.tolerance > 0

    @property
    def unjudged(self) -> int:
        """Chunks with other bits, behind the last one of their epoch of which latents were kept."""
        return sum(self._open.values())

    @property
    def vouched(self) -> bool:
        """Whether no more is unjudged than the interval leaves over."""
        return all(count < max(self.every, 1) for count in self._open.values())

    async def take(self, epoch: int, recorded: str, made: api.ChunkDone) -> None:
        """A chunk was made again. `recorded` '': its latents were lost, there is nothing to compare with."""
        if not recorded:
            return
        if made.digest == recorded:
            self._open[epoch] = 0
            return
        if not self.tolerance:
            self.mismatches.append(Mismatch(epoch, made.chunk, recorded, made.digest))
            return
        wanted = await self.kept(recorded)
        if wanted is None:
            self._open[epoch] = self._open.get(epoch, 0) + 1
            return
        self._open[epoch] = 0
        error = api.largest_error(wanted, made.latents)
        if error <= self.tolerance:
            self.within, self.largest = self.within + 1, max(self.largest, error)
        else:
            self.mismatches.append(Mismatch(epoch, made.chunk, recorded, made.digest, error))
