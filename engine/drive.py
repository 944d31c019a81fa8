"""The only place iteration lives: one chunk is driven through init, next, execute, advance and finalize.

    init -> next -> [stage] execute | boundary | advance -> next -> ... -> Done -> finalize [commit]
                            before a decode: [commit], release the next chunk -> decode -> finalize

A chunk is a transaction: cancellation and faults roll its staged cache write back, except a write that belongs to the
previous chunk, which is committed at its own boundary. A chunk that is released before its decode is committed there.
Knows no device, no clock and no model.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from ..models.contract.cache import CacheView
from ..models.contract.card import FrameSpec
from ..models.contract.latents import Latents
from ..models.contract.loop import Ask, ChunkLoop, Commit, Done, Loop, Outcome, StepKind, WorkPlan
from .cancel import CancelScope


class LoopFault(RuntimeError):
    """A loop that does not keep the contract: what it returned is not what was asked for."""


class BadFrames(ValueError):
    """A finished chunk whose frames are not what the card promises."""


class Writes(Protocol):
    """The cache writes of one session's slot (`slab_pool.CacheSlot`; `NoCache` for cards without one)."""

    def view(self) -> CacheView | None: ...

    def stage(self) -> None: ...

    def rebuild(self, entries: int) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class NoCache:
    """Writes of a card that keeps no cache."""

    def view(self) -> CacheView | None:
        return None

    def stage(self) -> None: ...

    def rebuild(self, entries: int) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


AskT = TypeVar("AskT")
Made = TypeVar("Made")
Execute = Callable[[WorkPlan[Any], CacheView | None], Awaitable[Any]]


class DecodeOverlap:
    """One chunk's part in running its decode beside the next chunk's denoising.

        chunk n      [ denoise .. commit ][ decode           ]
        chunk n + 1                       [ denoise .. commit ]..[ decode ]

    A chunk is released once only its pictures are missing, and ended once they are made or lost. At most one chunk is
    released and not ended: the next one waits for it before its own decode.

    `wanted` says, before the decode, whether the next chunk should begin now; `go_on` then moves the world to it.
    `before`: the chunk in front. `same_world` is false when the world was begun anew since that chunk.

    `boundary` is set when the next chunk may begin: this one is released, or it has ended. `ended`: nothing is missing.
    """

    def __init__(
        self,
        wanted: Callable[[], bool] = lambda: False,
        go_on: Callable[[Any], None] = lambda carry: None,
        before: "DecodeOverlap | None" = None,
        same_world: bool = True,
    ) -> None:
        self.wanted, self._go_on = wanted, go_on
        self._before = before if before is not None and before.decoding else None
        self._same_world = same_world
        self.boundary, self.ended = asyncio.Event(), asyncio.Event()
        self._carry: Any = None
        self.released = False

    @property
    def decoding(self) -> bool:
        """Its world has gone on and its pictures are still being made."""
        return self.released and not self.ended.is_set()

    async def wait_decoded(self) -> Any | None:
        """Wait until the chunk in front has ended. Its carry, if this chunk began without what only its decode told."""
        before, self._before = self._before, None  # a long rollout keeps none of the chunks behind it
        if before is None:
            return None
        await before.ended.wait()
        return before._carry if self._same_world else None

    def release(self, carry: Any) -> None:
        """What this chunk staged is committed, and the next one may begin with `carry`."""
        self.released = True
        self._go_on(carry)
        self.boundary.set()

    def end(self, carry: Any | None) -> None:
        """It is finished with this carry (None: it ended without pictures), and everything about it has been told."""
        self._carry = carry
        self.ended.set()
        self.boundary.set()


async def drive_chunk(
    loop: ChunkLoop[Any, Any, Any, Any],
    ask: Ask[Any],
    writes: Writes,
    execute: Execute,
    scope: CancelScope,
    frame: FrameSpec,
    overlap: DecodeOverlap | None = None,
    start: Any | None = None,
    stepped: Callable[[Any], None] | None = None,
) -> Outcome[Any]:
    """Make one chunk, from its beginning or from a state it had. `stepped` hears the state after each step.

    Raises `Superseded`, `BadFrames`, `LoopFault` or whatever a step raised; then nothing of it is committed, unless it
    was released: then only its pictures are missing.
    """
    asked = released = False
    try:
        scope.check()
        state = loop.init(ask) if start is None else start
        while not isinstance(plan := _next(loop, state), Done):
            if plan.kind is StepKind.DECODE and overlap is not None and not asked:
                asked = True
                state, released = await _before_decode(loop, state, writes, scope, overlap)
                continue
            if plan.commit is not Commit.NONE:
                writes.stage()
            if plan.rebuilt:
                writes.rebuild(plan.rebuilt)
            result = await execute(plan, writes.view())
            # The write of the chunk before stays even when this one was cancelled during the step: commit, then check.
            if plan.commit is Commit.PREVIOUS:
                writes.commit()
            scope.check()
            state = loop.advance(state, result)
            if stepped is not None:
                stepped(state)
        outcome = loop.finalize(state)
        _check(loop, outcome, frame.shape(opens=ask.carry is None))
        if not released:
            writes.commit()
    except BaseException:
        # A released chunk has nothing staged: what is staged now belongs to the chunk behind it.
        if not released:
            writes.rollback()
        raise
    return outcome


async def drive_loop(loop: Loop[AskT, Any, Any, Any, Made], ask: AskT, execute: Execute, scope: CancelScope) -> Made:
    """Run a loop beside the main one, from its ask to what it makes; its steps see no cache and commit nothing.

    Raises `Superseded`, `LoopFault` or whatever a step raised.
    """
    scope.check()
    state = loop.init(ask)
    while not isinstance(plan := _next(loop, state), Done):
        result = await execute(plan, None)
        scope.check()
        state = loop.advance(state, result)
    return loop.finalize(state)


def _next(loop: Loop[Any, Any, Any, Any, Any], state: Any) -> WorkPlan[Any] | Done:
    plan: object = loop.next(state)
    if not isinstance(plan, WorkPlan | Done):
        raise LoopFault(f"{type(loop).__name__}.next returned a {type(plan).__name__}, a WorkPlan or Done is needed")
    return plan


async def _before_decode(
    loop: ChunkLoop[Any, Any, Any, Any], state: Any, writes: Writes, scope: CancelScope, overlap: DecodeOverlap
) -> tuple[Any, bool]:
    """The state with what only the chunk before could tell, and whether this chunk was released."""
    if (carry := await overlap.wait_decoded()) is not None:
        state = loop.rebase(state, carry)
    scope.check()
    if not overlap.wanted() or (early := loop.early_carry(state)) is None:
        return state, False
    writes.commit()
    overlap.release(early)
    return state, True


def _check(loop: object, made: object, promised: tuple[int, ...]) -> None:
    if not isinstance(made, Outcome):
        raise LoopFault(f"{type(loop).__name__}.finalize returned a {type(made).__name__}, an Outcome is needed")
    frames: object = made.frames
    latents: object = made.latents
    if not isinstance(latents, Latents):
        raise LoopFault(f"an Outcome's latents are a {type(latents).__name__}, Latents.of an array is needed")
    if not isinstance(frames, np.ndarray):
        raise BadFrames(f"frames are a {type(frames).__name__}, the card promises an array of uint8")
    if frames.dtype != np.uint8:
        finite = bool(np.isfinite(frames).all())
        raise BadFrames(f"frames are {frames.dtype} (all finite: {finite}), the card promises uint8")
    if frames.shape != promised:
        raise BadFrames(f"frames have shape {frames.shape}, the card promises {promised}")
