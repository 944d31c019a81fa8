"""What went wrong with a chunk: a word for programs, a sentence for people, a traceback in the log if unexpected."""

import logging

from ..caches.pools import UnknownFeature
from ..drive import BadFrames

log = logging.getLogger(__name__)


def described(problem: Exception, chunk: int, session: str) -> tuple[str, str]:
    """Code and detail of a fault."""
    match problem:
        case BadFrames():
            return "bad_frames", str(problem)
        case UnknownFeature():
            return "unknown_prompt", f"no feature {problem.key}: encode the prompt again"
        case _:
            log.error("chunk %d of session %s failed", chunk, session, exc_info=problem)
            return "step_failed", f"{type(problem).__name__}: {problem}"
