"""Suspends rooms when the server stops and restores them when somebody comes again.

The room's part goes through Redis, the world's part through the engine. The log says once what could not be kept or
restored.
"""

import asyncio
import logging
from collections.abc import Callable, Collection

import msgspec

from ...engine.api import Begin, Close, Open, Opened, Progress, Refused, SuspendableEngine
from ..journal import replay
from ..journal.archive import ArchiveError
from ..journal.entry import JournalVersion
from ..journal.history import History, JournalCut
from ..journal.store import StoreError
from ..messages import WorldState
from ..session.prompt_versions import PromptsRecord
from ..session.session import Session
from .room import Room
from .suspend_store import SuspendedRoom, SuspendStore, SuspendStoreError

log = logging.getLogger(__name__)

NOTE_S = 1.0
REMADE_MAX = 20_000
"""Chunks: a longer world whose server was killed begins anew."""
FRAMES_MOST = 24
"""Frames of a chunk at most, so that their numbers go on."""
JOURNAL_FAULTS = (StoreError, ArchiveError, JournalVersion, JournalCut, replay.ReplayError)


class RoomSuspension:
    """See the module docstring."""

    def __init__(self, store: SuspendStore, engine: SuspendableEngine, history: History | None = None) -> None:
        """`history`: from which worlds are made again whose server was killed; None = they are not."""
        self._store, self._engine, self._history = store, engine, history

    async def keep_noting(self, rooms: Callable[[], list[Room]]) -> None:
        """Write down every second how the rooms stand; runs until it is cancelled."""
        noted: set[str] = set()
        while True:
            await asyncio.sleep(NOTE_S)
            standing = [room for room in rooms() if room.session.next_chunk and room.session.card is not None]
            try:
                for room in standing:
                    await self._store.note(room.record())
                for gone in noted - {room.spec.name for room in standing}:
                    await self._store.forget_note(gone)
                noted = {room.spec.name for room in standing}
            except SuspendStoreError as error:
                log.debug("%s", error)

    async def suspend(self, room: Room) -> bool:
        """Suspend a room in which nobody is connected; False when it has to end instead."""
        session = room.session
        if session.state is not WorldState.HELD or session.prompts.number == 0 or session.next_chunk == 0:
            return False  # nothing has been shown yet
        world = self._engine.suspend(session.world)
        if world is None:
            log.warning("a room ends with this server: its world's past is not whole")
            return False
        try:
            await self._store.put(SuspendedRoom(room.record(), world))
        except SuspendStoreError as error:
            log.warning("a room ends with this server: %s", error)
            return False
        room.let_go()
        return True

    async def find(self, room: str, cards: Collection[str]) -> SuspendedRoom | None:
        """The suspended room of that name and of one of these cards."""
        try:
            suspended = await self._store.find(room, cards)
        except SuspendStoreError as error:
            log.warning("a room begins anew: %s", error)
            return None
        return suspended if suspended is None or suspended.world else await self._from_the_journal(suspended)

    async def _from_the_journal(self, noted: SuspendedRoom) -> SuspendedRoom | None:
        """A room whose server was killed: its world is made again from all that was journaled."""
        session = noted.record.session
        try:
            if self._history is None:
                return None
            script = await replay.read(self._history.events(session.name))
            journaled = await self._history.last(session.name)
        except JOURNAL_FAULTS as error:
            await self._begins_anew(noted.record.room, str(error))
            return None
        world = f"{session.name}.j{journaled}"
        steps = script.history(script.playing, world)
        made = [step.chunk for step in steps if isinstance(step, Begin)]
        if not made:
            await self._begins_anew(noted.record.room, "nothing of it was shown")
            return None
        chunk, since = made[-1] + 1, session.world or session.name
        kept = self._engine.on_disk(since) if script.same_world(script.playing, session.epoch) else 0
        if not 0 < kept <= chunk:
            kept, since = 0, ""
        if len(made) > REMADE_MAX:
            steps = tuple(step for step in steps if not isinstance(step, Begin) or step.chunk >= kept)
        if chunk - kept > REMADE_MAX:
            await self._begins_anew(noted.record.room, f"{len(made)} chunks of it would have to be made again")
            return None
        again = script.opening(script.playing, world)
        opening = Open(world, again.card, again.seed, branch=again.branch, steps=again.steps)
        progress = Progress(
            epoch=script.playing, chunk=chunk, paused=True, frame=chunk * FRAMES_MOST, pts=chunk * 90_000
        )
        branch, noise = script.branch(script.playing), script.noise(script.playing)
        record = msgspec.structs.replace(
            session,
            epoch=script.playing,
            chunk=chunk,
            journaled=journaled,
            world=world,
            branch=branch,
            noise=noise,
            branches=max(script.branch(each.epoch) for each in script.epochs),
            epochs=script.epochs[-1].epoch,
        )
        texts, embeddings = tuple(script.texts.values()), tuple(script.embeddings.items())
        data = self._engine.written_down(opening, steps, texts, progress, embeddings, since)
        return SuspendedRoom(msgspec.structs.replace(noted.record, session=record), data)

    async def restore(self, suspended: SuspendedRoom, session: Session) -> Refused | bool:
        """Give the session its world again. False when that can never be, a refusal when it cannot be now."""
        room, record = suspended.record.room, suspended.record.session
        try:
            answer = await self._engine.restore(suspended.world, session.take)
        except ValueError as error:
            return await self._begins_anew(room, str(error))
        if isinstance(answer, Refused):
            return answer
        if answer.weights != record.weights:
            return await self._by_other_weights(suspended, session, answer)
        session.restore(record, answer.card)
        await self._forget(room)
        return True

    async def _by_other_weights(self, suspended: SuspendedRoom, session: Session, answer: Opened) -> Refused | bool:
        """The room goes on; its world begins anew, because nothing of it holds for these weights."""
        room, record = suspended.record.room, suspended.record.session
        log.warning("room %s: its world had weights '%s', it begins anew by '%s'", room, record.weights, answer.weights)
        self._engine.post(Close(session=answer.session))
        versions = record.prompts.versions
        session.restore(msgspec.structs.replace(record, prompts=PromptsRecord((), {}, 0)), answer.card)
        session.prompts.go_on(max(version.number for version in (versions[-1], *record.prompts.planned)))
        refused = await session.turns.begin_elsewhere(answer.card, versions[-1])
        if refused is not None:
            session.let_go()
            return refused
        await self._forget(room)
        return True

    async def _begins_anew(self, room: str, why: str) -> bool:
        log.warning("a room begins anew: %s", why)
        await self._forget(room)
        return False

    async def _forget(self, room: str) -> None:
        try:
            await self._store.forget(room)
        except SuspendStoreError as error:
            log.warning("%s", error)
