"""A network between a client of this process and a server: loss, delay, reordering and a bandwidth, for each direction.

    client socket -> up   -> server        a datagram is lost, or arrives after delay + jitter, behind what the
    client socket <- down <- server        bandwidth still has to carry; jitter is what puts datagrams out of order

Put into the client's sockets (`shape`), so that any server, in another process or not, is met through it. `ShapedPath`
is pure: times are arguments, chances come from a seed.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
from aioice.ice import Connection, StunProtocol

QUEUE_MS = 300.0
"""What a bandwidth keeps waiting before it drops, as home routers do."""


class PathSpec(msgspec.Struct, frozen=True):
    """One direction. `loss`: share of datagrams. `jitter_ms`: up to so much more delay, drawn for each datagram alone.
    `kbps` 0 = no limit."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    kbps: int = 0


class ShapedPath:
    """What becomes of each datagram of one direction."""

    def __init__(self, spec: PathSpec, dice: random.Random) -> None:
        self.spec, self._dice = spec, dice
        self._free_at = 0.0
        self.carried = self.lost = 0

    def arrival(self, now: float, size: int) -> float | None:
        """When a datagram that leaves now arrives; None = never."""
        spec = self.spec
        if self._dice.random() < spec.loss:
            self.lost += 1
            return None
        leaves = now
        if spec.kbps:
            begins = max(now, self._free_at)
            if begins - now > QUEUE_MS / 1000:
                self.lost += 1
                return None
            leaves = self._free_at = begins + size * 8 / (spec.kbps * 1000)
        self.carried += 1
        return leaves + (spec.delay_ms + self._dice.random() * spec.jitter_ms) / 1000


class Network:
    """Both directions of one client. `up`, `down` may be replaced while it runs; `cut` loses everything, `forget` all
    that comes and goes by the sockets that there are."""

    def __init__(self, up: PathSpec, down: PathSpec, seed: int = 0) -> None:
        self.dice = random.Random(seed)
        self.up, self.down = ShapedPath(up, self.dice), ShapedPath(down, self.dice)
        self.cut = False
        self._age = 0

    def forget(self) -> None:
        """The router has: what goes by another socket, of a new connection, gets through."""
        self._age += 1

    def shape(self, connection: Connection) -> None:
        """Shape every socket of an ICE connection; call it when candidates have been gathered."""
        for protocol in connection._protocols:
            if isinstance(protocol, StunProtocol):
                self.shape_socket(protocol)

    def shape_socket(self, protocol: StunProtocol) -> None:
        """One of them."""
        received, plain, age = protocol.datagram_received, protocol.transport, self._age

        def receive(data: bytes, address: Any) -> None:
            self._pass(self.down, age, data, lambda: received(data, address))

        def send(data: bytes, address: Any) -> None:
            self._pass(self.up, age, data, lambda: None if plain.is_closing() else plain.sendto(data, address))

        protocol.transport = _ShapedTransport(plain, send)  # type: ignore[assignment]
        protocol.datagram_received = receive  # type: ignore[method-assign,assignment]

    def _pass(self, path: ShapedPath, age: int, data: bytes, deliver: Callable[[], None]) -> None:
        if self.cut or age != self._age:
            path.lost += 1
            return
        loop = asyncio.get_running_loop()
        at = path.arrival(loop.time(), len(data))
        if at is not None:
            loop.call_at(at, deliver)


class _ShapedTransport:
    """A datagram transport that sends through a network, and otherwise is the one it stands for."""

    def __init__(self, transport: asyncio.DatagramTransport, send: Callable[[bytes, Any], None]) -> None:
        self._transport, self._send = transport, send

    def sendto(self, data: bytes, address: Any = None) -> None:
        self._send(data, address)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
