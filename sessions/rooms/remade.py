"""A world whose server was killed, as it was suspended: from what was journaled, and its last checkpoint on the disk.

    note of the room --+
    journal -----------+--> suspended room, as if its server had been told to stop
    checkpoint --------+        none on the disk: the world is made again from its opening

Knows no room that is open.
"""

import msgspec

from ...engine.api import Begin, LatencyClass, Progress, SuspendableEngine
from ..journal.history import History
from ..journal.script import SCRIPT_FAULTS, Script, read_session
from ..session.spec import SHOWN_MAX, SessionRecord, ShownChunk
from .suspend_store import SuspendedRoom

REMADE_MOST = 20_000
"""Chunks that are made again before somebody sees something; a longer world begins anew."""
FRAMES_MOST = 24
"""Frames of a chunk at most, so that their numbers go on."""


class NotRemade(RuntimeError):
    """The world cannot be made again, and why."""


async def remade(noted: SuspendedRoom, history: History, engine: SuspendableEngine) -> SuspendedRoom:
    """A room that was only noted, with its world. Raises `NotRemade`."""
    session = noted.record.session
    try:
        script = await read_session(history, session.name)
        journaled = await history.last(session.name)
    except SCRIPT_FAULTS as error:
        raise NotRemade(str(error)) from error
    world = f"{session.name}.j{journaled}"
    steps = script.history(script.playing, world)
    begun = [step for step in steps if isinstance(step, Begin)]
    if not begun:
        raise NotRemade("nothing of it was shown")
    chunk = begun[-1].chunk + 1
    since, kept = _checkpoint(engine, session, script, chunk)
    if chunk - kept > REMADE_MOST:
        raise NotRemade(f"{len(begun)} chunks of it would have to be made again")
    if len(begun) > REMADE_MOST:
        steps = tuple(step for step in steps if not isinstance(step, Begin) or step.chunk >= kept)
    shown = tuple(ShownChunk(each.chunk, each.conditions.epoch, -1) for each in begun[-SHOWN_MAX:])
    record = msgspec.structs.replace(
        _of_now(session, script), chunk=chunk, journaled=journaled, world=world, shown=shown
    )
    opening = script.opening(script.playing, world, LatencyClass.INTERACTIVE)
    progress = Progress(epoch=script.playing, chunk=chunk, paused=True, frame=chunk * FRAMES_MOST, pts=chunk * 90_000)
    data = script.written_down(engine, opening, steps, progress, since)
    return SuspendedRoom(msgspec.structs.replace(noted.record, session=record), data)


def _checkpoint(engine: SuspendableEngine, session: SessionRecord, script: Script, chunk: int) -> tuple[str, int]:
    """The name of the world's checkpoint on the disk, and the chunk before which it is; '' and 0 = there is none."""
    name = session.world or session.name
    kept = engine.on_disk(name) if script.same_world(script.playing, session.epoch) else 0
    return (name, kept) if 0 < kept <= chunk else ("", 0)


def _of_now(session: SessionRecord, script: Script) -> SessionRecord:
    """The note was of up to a second before the end: the journal knows which future played last."""
    return msgspec.structs.replace(
        session,
        epoch=script.playing,
        branch=script.branch(script.playing),
        noise=script.noise(script.playing),
        branches=max(script.branch(each.epoch) for each in script.epochs),
        epochs=script.epochs[-1].epoch,
    )
