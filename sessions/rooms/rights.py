"""What a participant may do in a room, as a token says it or as an open server gives it to everybody. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Grant(StrEnum):
    """driver: takes a free wheel by coming, and a co-driver's at any time. co-driver: asks for the wheel, or takes a
    free one when told to. spectator: watches and likes. recorder: watches, and nobody sees it."""

    DRIVER = "driver"
    CO_DRIVER = "co-driver"
    SPECTATOR = "spectator"
    RECORDER = "recorder"

    @property
    def may_drive(self) -> bool:
        return self in (Grant.DRIVER, Grant.CO_DRIVER)


@dataclass(frozen=True, slots=True)
class Rights:
    """`identity`: whose seat it is, however often they come; None = each newcomer is somebody else. `metadata`: the
    application's own words, handed on to everybody in the room."""

    grant: Grant = Grant.DRIVER
    identity: str | None = None
    name: str | None = None
    metadata: str = ""


OPEN = Rights()
"""Of everybody where no token is asked for."""
