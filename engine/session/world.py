"""What one session's world is between two chunks: its slot, carry, seed and place in time. Knows no device and no time.

ask -> (a chunk is driven) -> advance | nothing of it is kept            restarts wait for such a boundary
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...models.contract.loop import Ask, Outcome
from .. import api
from ..caches.parts import WorldPart
from ..caches.slab_pool import CacheSlot
from ..caches.snapshot import PromptProgress
from ..card import CardRuntime
from ..drive import NoCache, Writes

LIVED_MAX = 256


class SessionWorld:
    """Takes a slot if there is one. Without it (suspended) the world is neither asked nor advanced."""

    def __init__(self, served: CardRuntime, opening: api.Open) -> None:
        self.served, self.session, self._first = served, opening.session, opening
        self.slot: CacheSlot | None = None
        self.writes: Writes = NoCache()
        if served.pool.taken < served.pool.slots:
            self.take_slot()
        self.seed, self.branch = opening.seed, opening.branch
        self.steps = opening.steps or served.default_steps
        self.number = 0
        self.epoch = 0
        """Restarts up to this epoch have been carried out."""
        self.carry: Any = None
        self.picture: npt.NDArray[np.uint8] | None = None
        self.generation = 0
        """Restarts, and slots that were left, so far: what was noted before one says nothing after it."""
        self.first_frames: api.FirstFrames | None = None
        """What the first chunk starts from; forgotten once that is made."""
        self.written: object | None = None
        """Embedding of what the card's prompt loop wrote, for the chunk that begins next."""
        self.prompt_progress: Callable[[], PromptProgress | None] = lambda: self.progress
        """Where the prompt loop is at this boundary, for a snapshot; who runs it says so."""
        self.progress: PromptProgress | None = None
        """Where the prompt loop is in a world that was restored; taken over once by who runs it."""
        self.parts: dict[int, WorldPart] = {}
        """By stamp: committed entries whose content lies in the store, so that no checkpoint reads them again."""
        self.work = 1.0
        """A chunk's work in chunks without adapters."""
        self.lived: deque[api.HistoryStep] = deque(maxlen=LIVED_MAX)
        """The last chunks and restarts that made it what it is."""
        self._restart: tuple[int, int, api.FirstFrames | None] | None = None

    def unmake(self) -> None:
        """Give the slot back and be what it was before its first chunk: it could not be made again."""
        self.leave_slot()
        self.seed, self.branch, self.number, self.epoch = self._first.seed, self._first.branch, 0, 0
        self.carry = self.picture = self.first_frames = self.progress = None
        self.generation += 1

    def between(self, number: int, end: int) -> tuple[api.HistoryStep, ...] | None:
        """All that was done from chunk `number` up to chunk `end`; None when that is not known any more."""
        steps = [step for step in self.lived if isinstance(step, api.Supersede) or number <= step.chunk < end]
        made = [step.chunk for step in steps if isinstance(step, api.Begin)]
        return tuple(steps) if made == [*range(number, end)] else None

    def part_from(self, world: "SessionWorld", branch: int) -> None:
        """Be what another world is at this boundary, with the noise of `branch`. The slot holds its entries."""
        self.seed, self.branch, self.number, self.epoch = world.seed, branch, world.number, world.epoch
        self.carry, self.picture, self.first_frames = world.carry, world.picture, world.first_frames
        self.progress = world.prompt_progress()

    def ask(self, conditions: api.Conditions, feature: Callable[[str], object]) -> Ask[Any]:
        """What the next chunk starts from. Raises what `feature` raises for a key it does not know."""
        assert self.slot is not None, "a suspended world is not asked"
        return Ask(
            seed=self.seed,
            branch=self.branch,
            chunk=self.number,
            steps=self.steps,
            conditions=conditions,
            features=tuple((feature(share.key), share.weight) for share in conditions.prompts),
            carry=self.carry,
            committed=self.slot.count,
            first_frames_FHWC=None if self.first_frames is None else self.first_frames.unpack(),
            written=self.written,
        )

    def advance(self, outcome: Outcome[Any]) -> None:
        """Go on to the next chunk: this one is finished."""
        self.carry, self.first_frames, self.picture = outcome.carry, None, outcome.frames[-1]
        self.number += 1

    def go_on(self, carry: Any) -> None:
        """Go on to the next chunk; this one's pictures may come later (`decoded`)."""
        self.carry, self.first_frames = carry, None
        self.number += 1

    def decoded(self, number: int, generation: int, outcome: Outcome[Any]) -> None:
        """The pictures of a chunk that was released early are made.

        They say nothing about a world that was begun anew since. The carry of the chunk behind it, when that is done
        already, is newer.
        """
        if generation == self.generation:
            self.picture = outcome.frames[-1]
            if number + 1 == self.number:
                self.carry = outcome.carry

    def restart(self, epoch: int, seed: int, first_frames: api.FirstFrames | None = None) -> None:
        """Ask for a new world; `begin_restart` carries it out."""
        self._restart = (epoch, seed, first_frames)

    def begin_restart(self) -> None:
        """Carry out a restart that was asked for; only at a boundary."""
        if self._restart is not None:
            asked, self._restart = self._restart, None
            self.begin_anew(*asked)

    def begin_anew(self, epoch: int, seed: int, first_frames: api.FirstFrames | None = None) -> None:
        self.epoch, self.seed, self.carry, self.first_frames = epoch, seed, None, first_frames
        self.progress = None
        self.generation += 1
        self.lived.append(api.Supersede(self.session, epoch, True, seed, first_frames))
        if self.slot is not None:
            self.slot.restore(0)

    def take_slot(self) -> None:
        """Raises `slab_pool.PoolFull`. What the slot holds is a fresh world's until it is restored."""
        self.slot = self.served.pool.acquire()
        self.writes = NoCache() if self.served.loaded.card.cache is None else self.slot

    def leave_slot(self) -> None:
        """Free it, if there is one; what the world was is the caller's to keep."""
        if self.slot is not None:
            self.served.pool.free(self.slot)
            self.slot, self.parts = None, {}
            self.generation += 1
