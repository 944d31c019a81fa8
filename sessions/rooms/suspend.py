"""Suspends rooms when the server stops and restores them when somebody comes again.

The room's part goes through Redis, the world's part through the engine. The log says once what could not be kept or
restored.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection

import msgspec

from ...engine.api import Close, Opened, Refused, SuspendableEngine
from ..journal.history import History
from ..messages import WorldState
from ..session.prompt_versions import PromptsRecord
from ..session.session import Session
from ..session.spec import SessionRecord
from .remade import NotRemade, remade, show_again
from .room import Room
from .suspend_store import SuspendedRoom, SuspendStore, SuspendStoreError

log = logging.getLogger(__name__)

NOTE_S = 1.0


class RoomSuspension:
    """See the module docstring."""

    def __init__(self, store: SuspendStore, engine: SuspendableEngine, history: History | None = None) -> None:
        """`history`: from which worlds are made again whose server was killed; None = they are not."""
        self._store, self._engine, self._history = store, engine, history
        self._opened = asyncio.Event()
        self._noted: set[str] = set()

    def opened(self) -> None:
        """A room is to be noted now: its server may be killed at any moment."""
        self._opened.set()

    async def keep_noting(self, rooms: Callable[[], list[Room]]) -> None:
        """Write down every second how the rooms stand; runs until it is cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NOTE_S):
                    await self._opened.wait()
            self._opened.clear()
            standing = [room for room in rooms() if room.session.card is not None and not room.session.spec.replays]
            try:
                for room in standing:
                    await self._store.note(room.record(shown=False))
                for gone in self._noted - {room.spec.name for room in standing}:
                    await self._store.forget_note(gone)
                self._noted = {room.spec.name for room in standing}
            except SuspendStoreError as error:
                log.debug("%s", error)

    async def suspend(self, room: Room) -> bool:
        """Suspend a room in which nobody is connected; False when it has to end instead, as a replay does."""
        session = room.session
        if session.spec.replays:
            return False
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
        if suspended is None or suspended.world:
            return suspended
        if self._history is None:
            return None
        try:
            return await remade(suspended, self._history, self._engine)
        except NotRemade as why:
            await self._begins_anew(room, str(why))
            return None

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
        if record.apart_s >= 0.0:
            await self._futures_again(record, session)
        await self._restored(suspended, session)
        return True

    async def _futures_again(self, record: SessionRecord, session: Session) -> None:
        """What people were shown before the stop they can still choose between."""
        why = "its journal is not read here"
        if self._history is not None:
            why = await show_again(session, record, self._history, self._engine)
        if why:
            log.warning("session %s: the futures that were shown cannot be had again: %s", record.name, why)
            session.turns.stand_alone("")

    async def _by_other_weights(self, suspended: SuspendedRoom, session: Session, answer: Opened) -> Refused | bool:
        """The room goes on; its world begins anew, because nothing of it holds for these weights."""
        room, record = suspended.record.room, suspended.record.session
        log.warning("room %s: its world had weights '%s', it begins anew by '%s'", room, record.weights, answer.weights)
        self._engine.post(Close(session=answer.session))
        words = record.prompts.versions[-1] if record.prompts.versions else None
        session.restore(msgspec.structs.replace(record, prompts=PromptsRecord((), {}, 0)), answer.card)
        session.prompts.go_on(record.prompts)
        refused = await session.turns.begin_elsewhere(answer.card, words)
        if refused is not None:
            session.let_go()
            return refused
        await self._restored(suspended, session)
        return True

    async def _restored(self, suspended: SuspendedRoom, session: Session) -> None:
        record = msgspec.structs.replace(suspended.record, session=session.suspended(shown=False))
        self._noted.add(record.room)
        try:
            await self._store.restored(record)
        except SuspendStoreError as error:
            log.warning("%s", error)

    async def _begins_anew(self, room: str, why: str) -> bool:
        log.warning("a room begins anew: %s", why)
        await self._forget(room)
        return False

    async def _forget(self, room: str) -> None:
        try:
            await self._store.forget(room)
        except SuspendStoreError as error:
            log.warning("%s", error)
