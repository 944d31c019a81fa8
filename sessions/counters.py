"""What the sessions layer counts, for /metrics. Totals since the server started unless said otherwise."""

from dataclasses import dataclass


@dataclass(slots=True)
class RoomsCounters:
    """`rooms` and `participants` are of now. What is refused or dropped is counted by why."""

    rooms: int = 0
    participants: int = 0
    sessions_opened: int = 0
    sessions_refused: int = 0
    sessions_closed: int = 0
    joins_refused: int = 0
    takeovers: int = 0
    inputs: int = 0
    inputs_dropped: int = 0
    messages_dropped: int = 0
    malformed: int = 0
    problems: int = 0
    prompts: int = 0
    resets: int = 0
    feedback: int = 0
    chunks_begun: int = 0
    chunks_done: int = 0
    chunks_late: int = 0
    chunks_cancelled: int = 0
    frames: int = 0
    frames_old_epoch: int = 0
    frames_shown: int = 0
    faults: int = 0
