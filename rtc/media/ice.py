"""Which addresses and UDP ports a viewer's connection may use.

No STUN server is asked unless one is configured, so answers never wait for one. Knows no SDP.
"""

import asyncio
import copy
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aioice import Candidate
from aioice.candidate import candidate_foundation, candidate_priority
from aioice.ice import Connection, StunProtocol

LOOPBACK = "127.0.0.1"
RECEIVE_BUFFER = 256 * 1024


class PortsExhausted(ConnectionError):
    """Every port of the configured range is taken."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__(f"no free UDP port in {first}..{last}")


@dataclass(slots=True)
class UdpPorts:
    """A closed range of ports, handed out in turn so that a closed connection's port rests before it is used again."""

    first: int
    last: int
    _next: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last <= 65535:
            raise ValueError(f"UDP port range {self.first}..{self.last} is not within 1..65535")

    def in_turn(self) -> list[int]:
        """All ports, starting after the last one that was handed out."""
        size = self.last - self.first + 1
        return [self.first + (self._next + index) % size for index in range(size)]

    def took(self, port: int) -> None:
        self._next = (port - self.first + 1) % (self.last - self.first + 1)


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """loopback_only: 127.0.0.1 alone (tests, a server bound to loopback). Else every address of the machine, and
    loopback in front of them for viewers on this machine. told: the address that viewers read instead, where a router
    passes every port on (1:1 NAT); loopback stays as it is."""

    loopback_only: bool
    ports: UdpPorts | None = None
    told: str | None = None

    def addresses(self, machine: list[str], viewer_is_local: bool) -> list[str]:
        if self.loopback_only:
            return [LOOPBACK]
        return [LOOPBACK, *machine] if viewer_is_local else machine


def confine(connection: Connection, policy: HostPolicy, viewer_is_local: bool) -> None:
    """Make one ICE connection gather its host candidates under the policy."""
    gather: Callable[..., Awaitable[list[Candidate]]] = connection.get_component_candidates

    async def gather_confined(component: int, addresses: list[str], timeout: int = 5) -> list[Candidate]:  # noqa: ASYNC109
        allowed = policy.addresses(addresses, viewer_is_local)
        if policy.ports is None:
            found = await gather(component=component, addresses=allowed, timeout=timeout)
        else:
            found = [await _bind_in_range(connection, component, host, policy.ports) for host in allowed]
            found += await gather(component=component, addresses=[], timeout=timeout)
        return [_as_told(candidate, policy.told) for candidate in found]

    connection.get_component_candidates = gather_confined  # type: ignore[method-assign]


def _as_told(candidate: Candidate, told: str | None) -> Candidate:
    """What the other side reads; the socket stays where it is."""
    if told is None or candidate.type != "host" or candidate.host == LOOPBACK:
        return candidate
    shown = copy.copy(candidate)
    shown.host = told
    return shown


async def _bind_in_range(connection: Connection, component: int, host: str, ports: UdpPorts) -> Candidate:
    loop = asyncio.get_running_loop()
    for port in ports.in_turn():
        try:
            transport, protocol = await loop.create_datagram_endpoint(
                lambda: StunProtocol(connection), local_addr=(host, port)
            )
        except OSError:
            continue
        ports.took(port)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        protocol.local_candidate = Candidate(
            foundation=candidate_foundation("host", "udp", host),
            component=component,
            transport="udp",
            priority=candidate_priority(component, "host"),
            host=host,
            port=port,
            type="host",
        )
        connection._protocols.append(protocol)
        return protocol.local_candidate
    raise PortsExhausted(ports.first, ports.last)
