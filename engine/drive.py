"""The only place iteration lives: one chunk is driven through init, next, execute, advance and finalize.

    init -> next -> [stage] execute | boundary | advance -> next -> ... -> Done -> finalize [commit]
                                       before a decode: [commit], the next chunk goes ahead -> decode -> finalize

A chunk is a transaction: cancellation and faults roll its staged cache write back, except a write that belongs to the
previous chunk, which is committed at its own boundary. Where its world goes ahead before its pictures are made, it is
committed there. Knows no device, no clock and no model.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import numpy as np

from ..models.contract.cache import CacheView
from ..models.contract.card import FrameSpec
from ..models.contract.loop import Ask, ChunkLoop, Commit, Done, Outcome, StepKind, WorkPlan


class Superseded(Exception):
    """The chunk was cancelled; seen at a step boundary."""


class BadFrames(ValueError):
    """A finished chunk whose frames are not what the card promises."""


class CancelScope:
    """One node of the tree server > session > chunk: cancelled when it or anything above it is."""

    __slots__ = ("_cancelled", "_parent")

    def __init__(self, parent: "CancelScope | None" = None) -> None:
        self._parent = parent
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True

    @property
    def cancelled(self) -> bool:
        return self._cancelled or (self._parent is not None and self._parent.cancelled)

    def check(self) -> None:
        if self.cancelled:
            raise Superseded


class Writes(Protocol):
    """The cache writes of one session's slot (`pools.SlotWrites`; `NoCache` for cards without one)."""

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


Execute = Callable[[WorkPlan[Any], CacheView | None], Awaitable[Any]]


class DecodeOverlap(Protocol):
    """Whether and when a chunk's world goes on before its pictures are made (`life/ahead.py`)."""

    async def met(self) -> Any | None:
        """Wait until the pictures of the chunk before are made; its carry, if this chunk began before that."""
        ...

    @property
    def wanted(self) -> bool: ...

    def go(self, carry: Any) -> None:
        """The next chunk may begin with this; what this one staged is committed."""
        ...


async def drive_chunk(
    loop: ChunkLoop[Any, Any, Any, Any],
    ask: Ask[Any],
    writes: Writes,
    execute: Execute,
    scope: CancelScope,
    frame: FrameSpec,
    ahead: DecodeOverlap | None = None,
) -> Outcome[Any]:
    """Make one chunk. Raises `Superseded`, `BadFrames` or whatever a step raised; then nothing of it is committed,
    unless its world went ahead: then only its pictures are missing.
    """
    asked = gone = False
    try:
        scope.check()
        state = loop.init(ask)
        while not isinstance(plan := loop.next(state), Done):
            if plan.kind is StepKind.DECODE and ahead is not None and not asked:
                asked = True
                state, gone = await _before_pictures(loop, state, writes, scope, ahead)
                continue
            if plan.commit is not Commit.NONE:
                writes.stage()
            if plan.rebuilt:
                writes.rebuild(plan.rebuilt)
            result = await execute(plan, writes.view())
            if plan.commit is Commit.PREVIOUS:
                writes.commit()
            scope.check()
            state = loop.advance(state, result)
        outcome = loop.finalize(state)
        _check_frames(outcome.frames, frame.shape(opens=ask.carry is None))
        if not gone:
            writes.commit()
    except BaseException:
        if not gone:
            writes.rollback()
        raise
    return outcome


async def _before_pictures(
    loop: ChunkLoop[Any, Any, Any, Any], state: Any, writes: Writes, scope: CancelScope, ahead: DecodeOverlap
) -> tuple[Any, bool]:
    """The state with what only the chunk before could tell, and whether the world has gone on."""
    if (carry := await ahead.met()) is not None:
        state = loop.rebase(state, carry)
    scope.check()
    if not ahead.wanted or (early := loop.early_carry(state)) is None:
        return state, False
    writes.commit()
    ahead.go(early)
    return state, True


def _check_frames(frames: np.ndarray[Any, Any], promised: tuple[int, ...]) -> None:
    if frames.dtype != np.uint8:
        finite = bool(np.isfinite(frames).all())
        raise BadFrames(f"frames are {frames.dtype} (all finite: {finite}), the card promises uint8")
    if frames.shape != promised:
        raise BadFrames(f"frames have shape {frames.shape}, the card promises {promised}")
