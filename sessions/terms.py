"""Words that messages are made of: what a number, a name or a text may be, and what people do and may do."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

Seq = Annotated[int, Meta(ge=0, le=2**53)]
Unit = Annotated[float, Meta(ge=-1.0, le=1.0)]
KeyCode = Annotated[str, Meta(min_length=1, max_length=24, pattern=r"^[A-Za-z0-9]+$")]
PersonName = Annotated[str, Meta(min_length=1, max_length=32, pattern=r"^[^\x00-\x1f\x7f]+$")]
PromptText = Annotated[str, Meta(min_length=1, max_length=2000)]
Weight = Annotated[float, Meta(gt=0.0, le=100.0)]
DRIVERS_MOST = 16
"""People who drive together, for each player of a world."""
DRIVERS_PATTERN = r"turns|controls:(\d{1,2}|[\w .-]+(\+[\w .-]+)*(,[\w .-]+(\+[\w .-]+)*)+)|vote(:\d{1,2})?"
DriversText = Annotated[str, Meta(max_length=512, pattern=f"^({DRIVERS_PATTERN})$")]
ControlLevel = tuple[Annotated[int, Meta(ge=0, lt=64)], Annotated[float, Meta(ge=0.0, le=1.0)]]


class ChannelMessage(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower, forbid_unknown_fields=True):
    """What crosses a data channel, as JSON text with a `type` field."""


class Role(StrEnum):
    """What somebody does in a room now."""

    DRIVER = "driver"
    SPECTATOR = "spectator"


class Grant(StrEnum):
    """What somebody may do in a room.

    driver: takes a free wheel by coming, and a co-driver's at any time. co-driver: asks for the wheel, or takes a free
    one. spectator: watches and likes. recorder: watches, and nobody sees it.
    """

    DRIVER = "driver"
    CO_DRIVER = "co-driver"
    SPECTATOR = "spectator"
    RECORDER = "recorder"

    @property
    def may_drive(self) -> bool:
        return self in (Grant.DRIVER, Grant.CO_DRIVER)


class Keep(StrEnum):
    """Which of two futures goes on, or that neither is better, or that nobody says."""

    THIS = "this"
    OTHER = "other"
    TIE = "tie"
    SKIP = "skip"
