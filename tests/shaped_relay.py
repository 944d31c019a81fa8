"""A UDP relay in front of a server's port: a narrow link between it and a client that is no program of ours.

    client <--> relay's port = loss, delay, bandwidth = relay's other port <--> server

On a loop of its own thread, so that browsers' tests, which have none, can use it. Server and client know each other by
the relay alone: take their own candidates out of the offer and the answer.
"""

import asyncio
import random
import re
import threading
from typing import Any

from worldroom.clients.bench.network import PathSpec, ShapedPath

HOST = "127.0.0.1"


class Relay:
    """See the module docstring. `down`, what the server sends, may be replaced while it runs."""

    def __init__(self, up: PathSpec, down: PathSpec) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        dice = random.Random(0)
        self.up, self.down = ShapedPath(up, dice), ShapedPath(down, dice)
        self._client: Any = None
        self._server: Any = None
        self._sockets: list[asyncio.DatagramTransport] = []

    def __enter__(self) -> "Relay":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            self._loop.call_soon_threadsafe(each.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _open(self) -> None:
        for side in (_Side(self, "client"), _Side(self, "server")):
            transport, _ = await self._loop.create_datagram_endpoint(lambda side=side: side, local_addr=(HOST, 0))
            self._sockets.append(transport)

    def narrow(self, down: PathSpec) -> None:
        self.down.spec = down

    def without_candidates(self, offer: str) -> str:
        """So that the server knows no address of the client."""
        return re.sub(r"a=candidate:.*\r\n", "", offer)

    def in_front(self, answer: str) -> str:
        """The answer with the relay in place of the server's own address."""
        found = re.search(r"a=candidate:\S+ 1 udp \d+ 127\.0\.0\.1 (\d+) typ host", answer)
        assert found is not None, answer
        self._server = HOST, int(found[1])
        port = self._sockets[0].get_extra_info("sockname")[1]
        return re.sub(rf"(a=candidate:.* 127\.0\.0\.1 ){found[1]} ", rf"\g<1>{port} ", answer)

    def came(self, side: str, data: bytes, address: Any) -> None:
        if side == "client":
            self._client = address
            path, out, to = self.up, self._sockets[1], self._server
        else:
            path, out, to = self.down, self._sockets[0], self._client
        at = path.arrival(self._loop.time(), len(data))
        if at is not None and to is not None:
            self._loop.call_at(at, lambda: out.is_closing() or out.sendto(data, to))


class _Side(asyncio.DatagramProtocol):
    def __init__(self, relay: Relay, name: str) -> None:
        self._relay, self._name = relay, name

    def datagram_received(self, data: bytes, address: Any) -> None:
        self._relay.came(self._name, data, address)
