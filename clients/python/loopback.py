"""Where an aiortc connection gathers its candidates: 127.0.0.1 is one that aioice leaves out by itself."""

from collections.abc import Awaitable, Callable

from aioice import Candidate
from aiortc import RTCPeerConnection

LOOPBACK = "127.0.0.1"


def gather_on_loopback(pc: RTCPeerConnection, alone: bool = True) -> None:
    """Loopback alone, or first. Call it before the offer is made."""
    for transport in pc._RTCPeerConnection__iceTransports:  # type: ignore[attr-defined]
        connection = transport.iceGatherer._connection
        gather = connection.get_component_candidates

        async def gather_local(
            component: int,
            addresses: list[str],
            gather: Callable[..., Awaitable[list[Candidate]]] = gather,
        ) -> list[Candidate]:
            hosts = [LOOPBACK] if alone else [LOOPBACK, *addresses]
            return await gather(component=component, addresses=hosts)

        connection.get_component_candidates = gather_local
