"""What a participant may do in a room, as a token says it or as an open server gives it to everybody, and what they let
others do with it. Pure."""

from dataclasses import dataclass

from ..drivers import DriversRule
from ..messages import Grant


@dataclass(frozen=True, slots=True)
class Rights:
    """`identity`: whose seat it is, however often they come; None = each newcomer is somebody else. `metadata`: the
    application's own words, handed on to everybody in the room. `consent`: what they do may be used to train models.
    `drivers`: how several people drive the room, if they open it."""

    grant: Grant = Grant.DRIVER
    identity: str | None = None
    name: str | None = None
    metadata: str = ""
    consent: bool = False
    drivers: DriversRule | None = None


OPEN = Rights()
"""Of everybody where no token is asked for."""

REPLAY = "replay"
REPLAY_WHY = "this is a replay: it can be watched and paused, nothing else"
"""Said to everybody who steers a session that is shown again."""
