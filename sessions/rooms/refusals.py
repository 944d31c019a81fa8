"""Refusals that need no engine: it is full, closing, or asked for what no room is."""

from ...engine.api import RefusalReason, Refused
from .room import Room


def refusal(reason: RefusalReason, detail: str, retry_after_s: float) -> Refused:
    return Refused(session="", reason=reason, detail=detail, queue_place=0, retry_after_s=retry_after_s)


def full(room: Room) -> Refused:
    detail = f"all {room.spec.seats} seats of this room are taken"
    return refusal(RefusalReason.ROOM_FULL, detail, retry_after_s=5.0)
