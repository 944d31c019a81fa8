"""What a session was when its worker ended: everything a new one needs besides the checkpoint. Pure data."""

from .. import api


class ResumeState(api.Message, frozen=True):
    """`history`: since the last checkpoint, every `Begin` whose chunk was done and every `Supersede` that restarted the
    world, in the order they took effect. `texts`: prompts, oldest first. `number`: the next chunk. The next frame is
    `frame`; the last one had `pts` and was shown at `at`.
    """

    opening: api.Open
    history: tuple[api.Begin | api.Supersede, ...] = ()
    texts: tuple[str, ...] = ()
    number: int = 0
    epoch: int = 0
    paused: bool = False
    kbps: int = 0
    frame: int = 0
    pts: int = 0
    at: float = 0.0
