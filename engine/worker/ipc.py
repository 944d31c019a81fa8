"""The socket between the edge and a worker process: what crosses it, and how it is framed.

    [ length, 4 bytes little endian | message as msgpack ]      both ways, over one socket pair

Commands and events of `api` cross as they are. Nothing waits: a side that leaves `BUFFERED_MAX` bytes unread is given
up. Knows no engine and no process.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from ...models.contract.recipe import RuntimeChoice
from .. import api
from ..session.resume_state import ResumeState
from ..spec import EngineSpec
from .devices import WorkerDevice

BUFFERED_MAX = 64 << 20
LENGTH = 4


class IpcMessage(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """What crosses the socket besides commands and events."""


class Boot(IpcMessage, frozen=True):
    """The first message: what the worker serves. `folder` keeps its checkpoints, `disk` those of
    sleepers ('' = none), `ledgers` what all workers of the server keep; the edge owns all three.
    `checkpoints`: folders of published weights, by card. `prices`: where they are kept, '' = nowhere.
    `options`: of a card's family, by card. `adapters`: a folder of low-rank weights that worlds may have, '' = none."""

    cards: tuple[str, ...]
    choice: RuntimeChoice | None
    spec: EngineSpec
    folder: str
    disk: str = ""
    ledgers: str = ""
    checkpoints: dict[str, str] = {}
    prices: str = ""
    options: dict[str, bytes] = {}
    device: WorkerDevice = WorkerDevice()
    adapters: str = ""


class Prepare(IpcMessage, frozen=True):
    """To a worker that waits for its `Boot`: it may have to serve these cards."""

    cards: tuple[str, ...]


class Request(IpcMessage, frozen=True):
    """What waits for the `Reply` of the same id: a session is to be opened, taken over where it was, or forked. The
    reply to a fork comes before anything is heard of its branches.
    """

    id: int
    asked: api.Open | ResumeState | api.ForkSession

    @property
    def session(self) -> str:
        return self.asked.opening.session if isinstance(self.asked, ResumeState) else self.asked.session


class Reply(IpcMessage, frozen=True):
    id: int
    answer: api.Opened | api.Forked | api.Refused


class Stop(IpcMessage, frozen=True):
    """Close every session, then end."""


class Heartbeat(IpcMessage, frozen=True):
    """Ten times a second: the worker's loop turns. `busy`: how long the device has worked on its batch, in seconds;
    beyond `patience` it hangs. `steps` are those since the last beat.
    """

    ready: bool
    cards: tuple[api.CardInfo, ...]
    capacity: tuple[api.Capacity, ...]
    busy: float
    patience: float
    sessions: tuple[api.SessionInfo, ...] = ()
    steps: tuple[api.BatchRan, ...] = ()


class CheckpointKept(IpcMessage, frozen=True):
    """A checkpoint of the world before `chunk` is in the folder; restarts up to `epoch` are in it."""

    session: str
    chunk: int
    epoch: int


class Broken(IpcMessage, frozen=True):
    """The worker cannot serve and ends. `theirs`: the person who started the server can put it right."""

    detail: str
    theirs: bool


ToWorker = Prepare | Boot | Request | Stop | api.Command
ToEdge = Reply | Heartbeat | CheckpointKept | Broken | api.Event

_to_worker: "msgspec.msgpack.Decoder[ToWorker]" = msgspec.msgpack.Decoder(ToWorker)
_to_edge: "msgspec.msgpack.Decoder[ToEdge]" = msgspec.msgpack.Decoder(ToEdge)
_encoder = msgspec.msgpack.Encoder()

In = TypeVar("In")


class IpcLink(asyncio.Protocol, Generic[In]):
    """One end. `hear` gets every message in order, `lost` is called once when the other side is gone."""

    def __init__(
        self, decoder: "msgspec.msgpack.Decoder[In]", hear: Callable[[In], None], lost: Callable[[], None]
    ) -> None:
        self._decoder, self._hear, self._lost = decoder, hear, lost
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=BUFFERED_MAX)

    def pause_writing(self) -> None:
        """The other side reads nothing any more."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= LENGTH:
            body = start + LENGTH
            end = body + int.from_bytes(buffer[start:body], "little")
            if len(buffer) < end:
                break
            start = end
            self._hear(self._decoder.decode(bytes(memoryview(buffer)[body:end])))
        del buffer[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._lost()

    def send(self, message: ToWorker | ToEdge) -> None:
        """Dropped when the other side is gone: `lost` tells."""
        if self._transport is None:
            return
        data = _encoder.encode(message)
        self._transport.write(len(data).to_bytes(LENGTH, "little") + data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def edge_end(end: socket.socket, hear: Callable[[ToEdge], None], lost: Callable[[], None]) -> "IpcLink[ToEdge]":
    """The edge's end of the pair, connected."""
    link = IpcLink(_to_edge, hear, lost)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=end)
    return link


async def worker_end(
    end: socket.socket, hear: Callable[[ToWorker], None], lost: Callable[[], None]
) -> "IpcLink[ToWorker]":
    """The worker's end of the pair, connected."""
    link = IpcLink(_to_worker, hear, lost)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=end)
    return link
