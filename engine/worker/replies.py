"""Questions to a worker that wait for its answer. A worker that ends answers all of them: not now."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from .. import api

AGAIN = 1.0

Answer = TypeVar("Answer")


class Replies(Generic[Answer]):
    """By the next of `ids`, which another kind of questions may share. Each is an `Answer` or a refusal."""

    def __init__(self, ids: Iterator[int]) -> None:
        self._waiting: dict[int, tuple[str, asyncio.Future[Answer | api.Refused]]] = {}
        self._ids = ids

    def ask(self, session: str, send: Callable[[int], None]) -> "asyncio.Future[Answer | api.Refused]":
        """`send` is called at once, so that what is posted next of the session comes after the question."""
        id, reply = next(self._ids), asyncio.get_running_loop().create_future()
        self._waiting[id] = session, reply
        reply.add_done_callback(lambda _: self._waiting.pop(id, None))
        send(id)
        return reply

    def heard(self, id: int, answer: Answer | api.Refused) -> None:
        """What answers another question is let pass."""
        _, reply = self._waiting.pop(id, (None, None))
        if reply is not None and not reply.done():
            reply.set_result(answer)

    def fail(self, detail: str) -> None:
        for session, reply in [*self._waiting.values()]:
            if not reply.done():
                reply.set_result(api.Refused(session, api.RefusalReason.NOT_READY, detail, 0, AGAIN))
