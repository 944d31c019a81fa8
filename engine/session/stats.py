"""What can be seen of one session at its door: counts its frames and remembers its last chunk. For `worldroom top`."""

from collections.abc import Callable

from .. import api
from .session import EngineSession


class SessionStats:
    """Stands in front of a session's listener; everything passes through unchanged. `absorbed_us`: not late yet."""

    __slots__ = ("_absorbed_us", "_events", "chunks", "frames", "last", "late")

    def __init__(self, events: Callable[[api.Event], None], absorbed_us: float) -> None:
        self._events, self._absorbed_us = events, absorbed_us
        self.frames, self.chunks, self.late = 0, 0, 0
        self.last: api.ChunkDone | None = None

    def __call__(self, event: api.Event) -> None:
        match event:
            case api.Frame():
                self.frames += 1
            case api.ChunkDone():
                self.chunks += 1
                self.late += event.late_us > self._absorbed_us
                self.last = event
        self._events(event)


def info(session: EngineSession, watched: SessionStats) -> api.SessionInfo:
    """One session as it stands."""
    last = watched.last
    return api.SessionInfo(
        session=session.session,
        card=session.served.loaded.card.name,
        latency_class=session.latency_class,
        state=session.state,
        frames=watched.frames,
        chunks=watched.chunks,
        late=watched.late,
        late_us=last.late_us if last else 0,
        price_us=round(session.served.chunk_price(session.steps) * 1e6),
        measured_us=last.timings.step_us + last.timings.decode_us if last else 0,
        wait_us=last.timings.wait_us if last else 0,
    )
