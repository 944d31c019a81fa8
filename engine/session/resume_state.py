"""What a session was when its worker ended: everything a new one needs besides the checkpoint. Pure data."""

from .. import api


class ResumeState(api.Message, frozen=True):
    """`history`: since the last checkpoint, every `Begin` whose chunk was done and every `Supersede` that restarted the
    world, and where it was forked, in the order they took effect. `complete`: it goes back to the opening, so that the
    checkpoint only saves time. `texts`: prompts, oldest first; `embeddings`: those
    of which only that is left, by key. The last frame was shown at `at`.
    """

    opening: api.Open
    history: tuple[api.HistoryStep, ...] = ()
    texts: tuple[str, ...] = ()
    embeddings: tuple[tuple[str, bytes], ...] = ()
    progress: api.Progress = api.Progress()
    at: float = 0.0
    complete: bool = False
