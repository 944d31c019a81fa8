"""Makes a session's world again on this worker: from its last snapshot, and by making the chunks since then once more.

The conditions of every chunk are known, so the world that comes out is the one that was shown, bit for bit. Nobody sees
the chunks that are made again.
"""

import logging

from .. import api
from ..caches.snapshot import SnapshotMismatch
from ..cancel import CancelScope
from .checkpoint import write_back
from .chunk import EngineChunk
from .context import SessionContext
from .driver import ChunkDriver
from .prompts import Prompts
from .resume_state import ResumeState

log = logging.getLogger(__name__)


async def restore(
    context: SessionContext, prompts: Prompts, driver: ChunkDriver, resume_state: ResumeState, data: bytes | None
) -> None:
    """Make a fresh world the one that `resume_state` describes, from the snapshot `data` on. Raises
    `SnapshotMismatch` when the snapshot and the history do not meet, and what a step or a snapshot raises.
    """
    world = context.world
    for text in resume_state.texts:
        await prompts.learn(text)
    for key, embedding in resume_state.embeddings:
        prompts.learn_embedding(key, embedding)
    if data is not None:
        await write_back(context, prompts, data)
    since, lived = world.number, [*world.lived]
    for step in resume_state.history:
        match step:
            case api.Supersede() if step.epoch > world.epoch:
                world.begin_anew(step.epoch, step.seed, step.first_frames)
            case api.Begin() if step.chunk == world.number:
                now = context.services.clock.now()  # due now: people look at a still picture
                scope = CancelScope(context.scope)
                await driver.drive(EngineChunk(step.chunk, step.conditions, scope, now, now, now, now, now))
            case api.Branched() if step.chunk == world.number:
                world.branch = step.branch
            case api.Begin() if step.chunk > world.number:
                raise SnapshotMismatch(
                    f"the history goes on at chunk {step.chunk}, the world ends before {world.number}"
                )
            case _:
                pass  # it is in the snapshot
    if resume_state.progress.chunk != world.number:
        raise SnapshotMismatch(
            f"chunk {resume_state.progress.chunk} should be next, the history leads to {world.number}"
        )
    world.lived.clear()
    world.lived.extend(lived or resume_state.history)
    log.info("session %s goes on at chunk %d, made again from chunk %d on", context.session, world.number, since)
