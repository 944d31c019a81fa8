"""A trace: when people come, press keys, change the prompt, redirect the world, rest and go. Data, types, reading.

The file is one JSON object, times are seconds since the trace began:

    {"made_by": "the command that writes this very file, or where it was recorded",
     "seconds": 300.0,
     "visits": [{"session": "s2", "latency_class": "interactive", "arrives": 9.7, "leaves": 120.7, "patience": 30.0,
                 "card": "", "moments": [[11.7, "key"], [25.0, "prompt"], [31.2, "redirect"], [40, "rest"]]}]}

`latency_class`: interactive (somebody steers), stream (somebody watches) or background. `patience` (0 where it is left
out): seconds for which a person who is not let in waits in line. `card` ('' where it is left out): whose world it is;
where there are several cards and none is named, visits take turns. `duty_cycle.json` is such a file.
"""

from enum import StrEnum
from pathlib import Path

import msgspec

from ..engine.api import LatencyClass

DUTY_CYCLE = Path(__file__).parent / "duty_cycle.json"


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


class Visit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One person's stay; moments are in order and lie within it. Raises ValueError where they do not."""

    session: str
    latency_class: LatencyClass
    arrives: float
    leaves: float
    moments: tuple[Moment, ...]
    patience: float = 0.0
    card: str = ""

    def __post_init__(self) -> None:
        times = [self.arrives, *(moment.at for moment in self.moments), self.leaves]
        if times != sorted(times) or self.arrives < 0 or self.patience < 0:
            raise ValueError(f"visit '{self.session}': 0 <= arrives <= its moments in order <= leaves is needed")


class Trace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See the module docstring. Raises ValueError when two visits have one name."""

    made_by: str
    seconds: float
    visits: tuple[Visit, ...]

    def __post_init__(self) -> None:
        names = [visit.session for visit in self.visits]
        if len(set(names)) < len(names):
            raise ValueError(f"visits have names of their own, got {len(names)} visits of {len(set(names))} names")


def load(path: Path = DUTY_CYCLE) -> Trace:
    """Raises `OSError` or `msgspec.MsgspecError`."""
    return msgspec.json.decode(path.read_bytes(), type=Trace)
