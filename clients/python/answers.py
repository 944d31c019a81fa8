"""The two answers to each steer, as futures: it is journaled, then it took effect. Knows no connection."""

import asyncio
from collections.abc import Iterator

from ...rtc.wire import Accepted, Applied


class Answers:
    """By the ids that steers are sent with."""

    def __init__(self) -> None:
        self._ids = 0
        self._accepted: dict[int, asyncio.Future[None]] = {}
        self._applied: dict[int, asyncio.Future[int]] = {}

    def expect(self) -> int:
        """A fresh id."""
        self._ids += 1
        loop = asyncio.get_running_loop()
        self._accepted[self._ids], self._applied[self._ids] = loop.create_future(), loop.create_future()
        return self._ids

    async def accepted(self, id: int) -> None:
        """Returns when the steer is journaled; raises what `failed` was told."""
        try:
            await self._accepted[id]
        finally:
            self._accepted.pop(id, None)

    async def applied(self, id: int) -> int:
        """The chunk from which on it counts; raises what `failed` was told."""
        return await self._applied.setdefault(id, asyncio.get_running_loop().create_future())

    def heard(self, message: Accepted | Applied) -> None:
        if isinstance(message, Applied):
            applied = self._applied.setdefault(message.id, asyncio.get_running_loop().create_future())
            if not applied.done():
                applied.set_result(message.chunk)
        elif (accepted := self._accepted.get(message.id)) is not None and not accepted.done():
            accepted.set_result(None)

    def failed(self, id: int, error: Exception) -> None:
        """The steer was refused."""
        _fail(self._accepted.get(id), error)
        _fail(self._applied.get(id), error)

    def lost(self, error: Exception) -> None:
        """No answer that is still open will come."""
        for future in self._all():
            _fail(future, error)

    def cancel(self) -> None:
        for future in self._all():
            future.cancel()

    def _all(self) -> "Iterator[asyncio.Future[None] | asyncio.Future[int]]":
        yield from self._accepted.values()
        yield from self._applied.values()


def _fail(future: "asyncio.Future[None] | asyncio.Future[int] | None", error: Exception) -> None:
    if future is not None and not future.done():
        future.set_exception(error)
        future.exception()  # whoever does not wait for it need not know
