"""Questions to a worker that wait for its `OpenReply`. A worker that ends answers all of them: not now."""

import asyncio
import itertools
from collections.abc import Callable

from .. import api
from . import ipc

AGAIN = 1.0
Reply = api.Opened | api.Refused


class Replies:
    """By the ids that it gives."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._ids = itertools.count()

    def ask(self, send: Callable[[int], None]) -> "asyncio.Future[Reply]":
        """`send` is called at once, so that what is posted next comes after the question."""
        id, reply = next(self._ids), asyncio.get_running_loop().create_future()
        self._waiting[id] = reply
        reply.add_done_callback(lambda _: self._waiting.pop(id, None))
        send(id)
        return reply

    def heard(self, message: ipc.OpenReply) -> None:
        reply = self._waiting.pop(message.id, None)
        if reply is not None and not reply.done():
            reply.set_result(message.answer)

    def fail(self, detail: str) -> None:
        for reply in [*self._waiting.values()]:
            if not reply.done():
                reply.set_result(api.Refused("", api.RefusalReason.NOT_READY, detail, 0, AGAIN))
