"""Puts rooms aside when the server stops and brings them back when somebody comes again: the room's part through
Redis, the world's part through the engine. What cannot be kept or brought back is said in the log, once."""

import logging

from ...engine.api import Refused
from ..messages import WorldState
from ..session.session import Session
from .room import Room
from .suspend_store import SuspendedRoom, SuspendStore, SuspendStoreError, WorldKeeper

log = logging.getLogger(__name__)


class RoomSuspension:
    """See the module docstring."""

    def __init__(self, worlds: SuspendStore, keeper: WorldKeeper) -> None:
        self._worlds = worlds
        self._keeper = keeper

    async def keep(self, room: Room) -> bool:
        """Put a room aside in which nobody is connected; False when it has to end instead."""
        session = room.session
        if session.state is not WorldState.HELD or session.prompts.number == 0 or session.next_chunk == 0:
            return False  # nothing has been shown yet
        world = self._keeper.keep(session.spec.name)
        if world is None:
            log.warning("a room ends with this server: its world's past is not whole")
            return False
        try:
            await self._worlds.put(SuspendedRoom(room.recorded(), world))
        except SuspendStoreError as error:
            log.warning("a room ends with this server: %s", error)
            return False
        room.leave()
        return True

    async def find(self, name: str, card: str) -> SuspendedRoom | None:
        """A room of that name and card that was put aside."""
        try:
            aside = await self._worlds.find(name)
        except SuspendStoreError as error:
            log.warning("a room begins anew: %s", error)
            return None
        return aside if aside is not None and aside.record.session.card == card else None

    async def bring_back(self, room: Room, session: Session, aside: SuspendedRoom) -> Refused | bool:
        """Furnish the room with the session of old. False when that world cannot be again, a refusal when not now."""
        record = aside.record.session
        try:
            answer = await self._keeper.take_over(aside.world, session.take)
        except ValueError as error:
            return await self._begins_anew(room, str(error))
        if isinstance(answer, Refused):
            return answer
        if answer.weights != record.weights:
            session.leave()
            return await self._begins_anew(room, f"its world has weights '{record.weights}', now '{answer.weights}'")
        session.bring_back(record, answer.card)
        room.furnish(session)
        room.bring_back(aside.record)
        await self._forget(room)
        return True

    async def _begins_anew(self, room: Room, why: str) -> bool:
        log.warning("a room begins anew: %s", why)
        await self._forget(room)
        return False

    async def _forget(self, room: Room) -> None:
        try:
            await self._worlds.forget(room.spec.name)
        except SuspendStoreError as error:
            log.warning("%s", error)
