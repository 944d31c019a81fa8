"""What can be seen of the engine from outside: one session for `worldroom top`, one card for who places rooms."""

from collections.abc import Iterable

from . import api
from .admission.admission import Admission
from .card import CardRuntime
from .device.device import Device
from .device.instructions import instruction_set
from .pools import pools_of
from .services import Services
from .session.session import EngineSession


def opened(session: EngineSession, services: Services) -> api.Opened:
    """What a session that came in is told, and what a replay of it needs to know."""
    loaded = session.served.loaded
    return api.Opened(
        session.session,
        session.served.info(services.adapters.names),
        loaded.weights,
        session.steps,
        str(loaded.choice.precision),
        loaded.choice.mode,
        machine=instruction_set(),
    )


def session_info(session: EngineSession, device: Device) -> api.SessionInfo:
    """One session as it stands on its device."""
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
        device=device.name,
    )


def capacity(
    served: CardRuntime,
    sessions: Iterable[EngineSession],
    services: Services,
    admission: Admission,
    device: Device,
    device_bytes: int,
    inspections: int,
    shared: tuple[api.PoolBytes, ...] = (),
) -> api.Capacity:
    """What the device holds of one card now, of all these sessions. `shared`: pools that are told with this card."""
    weights = services.weights
    mine = [session for session in sessions if session.served is served]
    counters = sum((session.counters for session in mine), served.counters)
    return api.Capacity(
        card=served.loaded.card.name,
        device=device.name,
        device_model=device.model,
        device_bytes=device_bytes,
        sessions=len(mine),
        sessions_max=admission.sessions_max(served),
        share_used=sum((admission.share(session) for session in mine if not session.suspended), 0.0),
        share_max=services.spec.share_cap,
        price_us=round(served.chunk_price(served.default_steps) * 1e6),
        chunk_us=round(served.chunk_seconds * 1e6),
        bytes_per_session=served.pool.spec.bytes_per_session,
        pool_bytes=served.pool.bytes_budget,
        pool_bytes_used=served.pool.bytes_used,
        queue_depth=services.dispatcher.depth,
        chunks_done=counters.chunks,
        chunks_late=counters.late,
        chunks_cancelled=counters.cancelled,
        frames_dropped=counters.dropped,
        frames_superseded=counters.superseded,
        faults=counters.faults,
        waiting=admission.waiting,
        degraded=counters.degraded,
        inspections=inspections,
        feature_bytes_used=services.features.bytes_used,
        features_evicted=services.features.evicted,
        asleep=sum(session.suspended for session in mine),
        pools=(*pools_of(served, weights.turns.cards[served.loaded.card.name]), *shared),
        on_device=weights.awake(served.loaded.card.name),
        in_the_way=() if weights.awake(served.loaded.card.name) else weights.in_the_way(served.loaded.card.name),
    )
