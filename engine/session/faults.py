"""What went wrong in a session: a word for programs, a sentence for people, a traceback in the log if unexpected."""

import logging

from .. import api
from ..caches.feature_cache import UnknownFeature
from ..drive import BadFrames, LoopFault
from .context import SessionContext
from .mailbox import Mailbox

log = logging.getLogger(__name__)

IN_A_ROW = 4
"""So often a chunk is made, under newer conditions each time, before somebody is asked: from the last commit at first,
then from what was written down of the world, in case that its memory on the device is what is bad.
"""
FROM_CHECKPOINT = {2: 1, 3: 2}
"""After so many: from the last checkpoint, from the one before."""


class Faults:
    """Tells faults. The last of `IN_A_ROW` without a chunk between also pauses the session, until somebody tries again;
    so does one that must halt it.
    """

    def __init__(self, context: SessionContext, mailbox: Mailbox) -> None:
        self._session, self._emit, self._counters = context.session, context.emit, context.counters
        self._mailbox = mailbox
        self._in_a_row = self._chunks = 0
        self._step_back = 0

    def step_back(self) -> int:
        """Which checkpoint the world should be made again from: 1 = the last one, 0 = none. It is asked for once."""
        tries, self._step_back = self._step_back, 0
        return tries

    def forgive(self) -> None:
        """Somebody tries again."""
        self._in_a_row = 0

    def tell(self, code: str, detail: str, halt: bool = False) -> None:
        """`halt` also cancels the chunk that is being made."""
        self._in_a_row = self._in_a_row + 1 if self._chunks == self._counters.chunks else 1
        self._chunks = self._counters.chunks
        self._counters.faults += 1
        fatal = halt or self._in_a_row >= IN_A_ROW
        self._step_back = 0 if fatal else FROM_CHECKPOINT.get(self._in_a_row, 0)
        if fatal:
            self._mailbox.pause()
        if halt:
            self._mailbox.cancel_chunk()
        self._emit(api.Fault(self._session, code, detail, fatal, whole=not halt))

    def chunk_failed(self, chunk: int, problem: Exception, halt: bool) -> None:
        match problem:
            case BadFrames():
                self.tell("bad_frames", str(problem), halt)
            case LoopFault():
                self.tell("bad_loop", str(problem), halt)
            case UnknownFeature():
                self.tell("unknown_prompt", f"no feature {problem.key}: encode the prompt again", halt)
            case _:
                log.error("chunk %d of session %s failed", chunk, self._session, exc_info=problem)
                self.tell("step_failed", f"{type(problem).__name__}: {problem}", halt)
