"""What can be seen of one session from outside, for `worldroom top`."""

from .. import api
from .session import EngineSession


def info(session: EngineSession) -> api.SessionInfo:
    """One session as it stands."""
    last, counters = session.pacer.last, session.counters
    return api.SessionInfo(
        session=session.session,
        card=session.served.loaded.card.name,
        latency_class=session.latency_class,
        state=session.state,
        frames=counters.frames,
        chunks=counters.chunks,
        late=counters.late,
        late_us=last.late_us if last else 0,
        price_us=round(session.served.chunk_price(session.steps) * 1e6),
        measured_us=last.timings.step_us + last.timings.decode_us if last else 0,
        wait_us=last.timings.wait_us if last else 0,
    )
