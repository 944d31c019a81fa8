"""Takes over a session whose worker ended: the checkpoint is restored, and what was done since is made again, unseen.

The conditions of every chunk are known, so the world that comes out is the one that was shown, bit for bit.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from ...models.contract.loop import Outcome
from .. import api
from ..caches import snapshot
from ..drive import CancelScope
from ..services import Services
from .checkpoint import bring_back
from .chunk import EngineChunk
from .prompts import Prompts
from .resume_state import ResumeState
from .world import SessionWorld

DriveChunk = Callable[[EngineChunk], Awaitable[Outcome[Any]]]


class ResumeLost(RuntimeError):
    """The checkpoint and the history do not meet, so the world cannot be made again."""


async def restore(
    world: SessionWorld,
    past: ResumeState,
    kept: bytes | None,
    services: Services,
    scope: CancelScope,
    prompts: Prompts,
    drive: DriveChunk,
) -> None:
    """Make a fresh world the one that `past` describes. Raises `ResumeLost` and what a step or a snapshot raises."""
    for text in past.texts:
        await prompts.learn(text)
    if kept is not None:
        await bring_back(world, snapshot.loads(kept), services, scope, prompts)
    for step in past.history:
        match step:
            case api.Supersede() if step.epoch > world.epoch:
                world.begin_anew(step.epoch, step.seed, step.opening)
            case api.Begin() if step.chunk == world.number:
                await _again(world, step, services, scope, drive)
            case api.Begin() if step.chunk > world.number:
                raise ResumeLost(f"the past goes on at chunk {step.chunk}, the checkpoint ends before {world.number}")
            case _:
                pass  # it is in the checkpoint
    if past.number != world.number:
        raise ResumeLost(f"chunk {past.number} should be next, the past leads to {world.number}")


async def _again(
    world: SessionWorld, step: api.Begin, services: Services, scope: CancelScope, drive: DriveChunk
) -> None:
    """Urgent: people look at a still picture."""
    now = services.clock.now()
    world.advanced(await drive(EngineChunk(world.number, step.conditions, CancelScope(scope), now, now, now, now)))
