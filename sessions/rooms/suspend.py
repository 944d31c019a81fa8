"""Suspends rooms when the server stops and restores them when somebody comes again.

The room's part goes through Redis, the world's part through the engine. The log says once what could not be kept or
restored.
"""

import logging

from ...engine.api import Refused, SuspendableEngine
from ..messages import WorldState
from ..session.session import Session
from .room import Room
from .suspend_store import SuspendedRoom, SuspendStore, SuspendStoreError

log = logging.getLogger(__name__)


class RoomSuspension:
    """See the module docstring."""

    def __init__(self, store: SuspendStore, engine: SuspendableEngine) -> None:
        self._store = store
        self._engine = engine

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

    async def find(self, room: str, card: str) -> SuspendedRoom | None:
        """The suspended room of that name and card."""
        try:
            suspended = await self._store.find(room)
        except SuspendStoreError as error:
            log.warning("a room begins anew: %s", error)
            return None
        return suspended if suspended is not None and suspended.record.session.card == card else None

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
            session.let_go()
            return await self._begins_anew(room, f"its world has weights '{record.weights}', now '{answer.weights}'")
        session.restore(record, answer.card)
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
