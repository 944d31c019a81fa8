"""A world whose server was killed, as it was suspended: from what was journaled, and its last checkpoint on the disk.

    note of the room --+
    journal -----------+--> suspended room, as if its server had been told to stop
    checkpoint --------+        none on the disk: the world is made again from its opening

Also the futures beside it that nobody had chosen between. Knows no room that is open.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ...engine.api import Begin, LatencyClass, Progress, SuspendableEngine
from ..journal.history import History
from ..journal.script import SCRIPT_FAULTS, Script, read_session
from ..session.adapters import AdaptersRecord
from ..session.recorded import futures_of, prompts_of
from ..session.session import Session
from ..session.spec import SHOWN_MAX, SessionRecord, ShownChunk
from .suspend_store import SuspendedRoom

REMADE_MOST = 20_000
"""Chunks that are made again before somebody sees something; a longer world begins anew."""
FRAMES_MOST = 24
"""Frames of a chunk at most, so that their numbers go on."""


class NotRemade(ValueError):
    """The world cannot be made again, and why."""


async def remade(noted: SuspendedRoom, history: History, engine: SuspendableEngine) -> SuspendedRoom:
    """A room that was only noted, with its world. Raises `NotRemade`."""
    session = noted.record.session
    script = await _script(session.name, history)
    begun = [step for step in script.history(script.playing, "") if isinstance(step, Begin)]
    if not begun:
        raise NotRemade("nothing of it was shown")
    journaled, made = await history.last(session.name), 1 + sum(len(each.chunks) for each in script.epochs)
    world, chunk = f"{session.name}.j{journaled}", begun[-1].chunk + 1
    shown = tuple(ShownChunk(each.chunk, each.conditions.epoch, -1) for each in begun[-SHOWN_MAX:])
    now = _of_now(session, script, begun, _frames_per_chunk(session.card, engine))
    record = msgspec.structs.replace(now, chunk=chunk, journaled=journaled, world=world, shown=shown)
    progress = Progress(epoch=script.playing, chunk=chunk, paused=True, frame=made * FRAMES_MOST, pts=made * 90_000)
    name = session.world or session.name
    checkpoint = name if script.same_world(script.playing, session.epoch) else ""
    data = _written(script, engine, world, progress, script.playing, checkpoint)
    return SuspendedRoom(msgspec.structs.replace(noted.record, session=record), data)


async def show_again(session: Session, record: SessionRecord, history: History, engine: SuspendableEngine) -> str:
    """Have the futures that an earlier server showed and between which nobody has chosen; the world that plays was
    restored. Why that cannot be, '' = it is so."""
    try:
        script = await _script(record.name, history)
        if script.choice is None or session.card is None:
            return ""
        shown, worlds = futures_of(script, script.choice, session.card), []
        if shown.still is not None:
            shown.still.remake = _Remake(record.name, shown.still.epoch, history, engine)
        leads = engine.progress(session.world)
        for lane in shown.lanes:
            future = lane.future
            future.world = f"{record.name}.j{record.journaled}.{future.epoch}"
            at = Progress(future.epoch, future.next_chunk, True, leads.kbps, leads.frame, leads.pts)
            worlds.append(_written(script, engine, future.world, at, future.epoch, f"{record.name}.{future.epoch}"))
    except NotRemade as why:
        return str(why)
    return await session.turns.show_again(shown, worlds, record.apart_s)


@dataclass(frozen=True, slots=True)
class _Remake:
    """Makes the world with which an epoch ends again; see `Future.remake`."""

    session: str
    epoch: int
    history: History
    engine: SuspendableEngine

    async def __call__(self, world: str, progress: Progress) -> bytes:
        script = await _script(self.session, self.history)
        return _written(script, self.engine, world, progress, self.epoch, f"{self.session}.{script.world(self.epoch)}")


async def _script(session: str, history: History) -> Script:
    try:
        return await read_session(history, session)
    except SCRIPT_FAULTS as error:
        raise NotRemade(str(error)) from error


def _written(
    script: Script, engine: SuspendableEngine, world: str, progress: Progress, epoch: int, checkpoint: str
) -> bytes:
    """The world before a chunk of that epoch, for `restore`: from the checkpoint of that name, if the disk has it."""
    steps = script.history(epoch, world, progress.chunk)
    kept = engine.on_disk(checkpoint) if checkpoint else 0
    since, kept = (checkpoint, kept) if 0 < kept <= progress.chunk else ("", 0)
    begun = sum(isinstance(step, Begin) for step in steps)
    if progress.chunk - kept > REMADE_MOST:
        raise NotRemade(f"{begun} chunks of it would have to be made again")
    if begun > REMADE_MOST:
        steps = tuple(step for step in steps if not isinstance(step, Begin) or step.chunk >= kept)
    return script.written_down(engine, script.opening(epoch, world, LatencyClass.INTERACTIVE), steps, progress, since)


def _of_now(session: SessionRecord, script: Script, begun: Sequence[Begin], frames_per_chunk: int) -> SessionRecord:
    """The note was of up to a second before the end: the journal knows which future played last, and under what."""
    shares, adapters = begun[-1].conditions.adapters, session.adapters
    if shares != adapters.shares and shares in script.stacks:
        adapters = AdaptersRecord(adapters.version + 1, script.stacks[shares], shares)
    turned = session.epoch != script.playing
    return msgspec.structs.replace(
        session,
        epoch=script.playing,
        branch=script.branch(script.playing),
        noise=script.noise(script.playing),
        branches=max(script.branch(each.epoch) for each in script.epochs),
        epochs=script.epochs[-1].epoch,
        prompts=prompts_of(script, begun, session.prompts, turned, frames_per_chunk),
        adapters=adapters,
        apart_s=max(session.apart_s, 0.0) if script.choice is not None else -1.0,
    )


def _frames_per_chunk(card: str, engine: SuspendableEngine) -> int:
    return next((info.frames_per_chunk for info in engine.cards() if info.name == card), 1)
