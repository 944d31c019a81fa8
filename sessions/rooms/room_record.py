"""A suspended room, as it is written down, and how those of earlier servers are read. Pure.

1    driver: who held the wheel, or null
2    drivers: who held it, one for each player of the card
3    holders: of each place at the wheel, or null; drivers: how several people drive; version
4    session: apart_s, prompts: last; a choice between futures stays open
"""

from typing import Any

import msgspec

from ..drivers import TURNS
from ..session.spec import SessionRecord
from .seats import SeatRecord

RECORD_VERSION = 4


class RecordUnreadable(ValueError):
    """Another version of the program wrote it, or nobody; the message says which."""


class RoomRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a suspended room is restored from, besides its session's world."""

    room: str
    drivers: str
    holders: tuple[str | None, ...]
    seats: tuple[SeatRecord, ...]
    session: SessionRecord
    version: int = RECORD_VERSION


def read_record(data: bytes) -> RoomRecord:
    """Of this version or an earlier one; raises `RecordUnreadable`."""
    try:
        found = msgspec.json.decode(data, type=dict[str, Any])
        version = found.get("version", 1 if "driver" in found else 2)
        if version == 1:
            found |= {"drivers": str(TURNS), "holders": [found.pop("driver")], "version": RECORD_VERSION}
        elif version == 2:
            found |= {"drivers": str(TURNS), "holders": found["drivers"], "version": RECORD_VERSION}
        elif version == 3:
            found["version"] = RECORD_VERSION
        elif version != RECORD_VERSION:
            raise RecordUnreadable(f"another version wrote it (form {version}, this one reads 1 to {RECORD_VERSION})")
        return msgspec.convert(found, RoomRecord)
    except (msgspec.MsgspecError, KeyError) as error:
        raise RecordUnreadable(f"it is none that this version reads: {error}") from None
