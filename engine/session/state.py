"""What a session in the engine is doing.

WAITING --timer--> DUE --Begin--> RUNNING --boundary--> WAITING
PAUSED asks for nothing, ASLEEP has given its slot back (or waits for one), CLOSED holds nothing
"""

from enum import StrEnum


class SessionState(StrEnum):
    WAITING = "waiting"
    DUE = "due"
    RUNNING = "running"
    PAUSED = "paused"
    ASLEEP = "asleep"
    CLOSED = "closed"
