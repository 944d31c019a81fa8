"""A duty cycle: when sessions come, rest, press keys, change the prompt, redirect the world and go. Data and types.

`duty_cycle.json` is synthetic, not recorded from people; `make_duty_cycle.py` wrote it and says from what. Times are
seconds since the trace began.
"""

from enum import StrEnum
from pathlib import Path

import msgspec

from ..api import LatencyClass

DEFAULT = Path(__file__).parent / "duty_cycle.json"


class Act(StrEnum):
    """What a person does. rest: looks away, the world stands; wake: goes on."""

    KEY = "key"
    PROMPT = "prompt"
    REDIRECT = "redirect"
    REST = "rest"
    WAKE = "wake"


class Moment(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    at: float
    act: Act


class Visit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One session's stay; moments are in order and lie within it."""

    session: str
    latency_class: LatencyClass
    arrives: float
    leaves: float
    moments: tuple[Moment, ...]


class DutyCycle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`made_by`: the command that writes this very file again."""

    made_by: str
    seconds: float
    visits: tuple[Visit, ...]


def load(path: Path = DEFAULT) -> DutyCycle:
    return msgspec.json.decode(path.read_bytes(), type=DutyCycle)
