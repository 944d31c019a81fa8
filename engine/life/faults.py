"""What went wrong with a chunk, in a word for programs and a sentence for people. Pure."""

from ..caches.pools import UnknownFeature
from ..drive import BadFrames

STEP_FAILED = "step_failed"


def described(problem: Exception) -> tuple[str, str]:
    """Code and detail of a fault."""
    match problem:
        case BadFrames():
            return "bad_frames", str(problem)
        case UnknownFeature():
            return "unknown_prompt", f"no feature {problem.key}: encode the prompt again"
        case _:
            return STEP_FAILED, f"{type(problem).__name__}: {problem}"
