"""A session's world that goes on before the pictures of its last chunk are made.

    chunk n      [ denoise .. commit ][ decode           ]                  decodes run beside the device
    chunk n + 1                       [ denoise .. commit ]..[ decode ]

It does so only where the next chunk would else begin late: where there is time, waiting costs nothing and the input is
newer. One chunk at most is without its pictures; the next one waits for them before it decodes. Knows no device.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from .chunk import EngineChunk


class PendingDecode:
    """The chunk whose pictures are being made, if there is one, and the carry of the last one that had been."""

    def __init__(self) -> None:
        self.chunk: EngineChunk | None = None
        self.carry: Any = None
        self._made = asyncio.Event()
        self._made.set()

    def go(self, chunk: EngineChunk) -> None:
        self.chunk, chunk.gone = chunk, True
        self._made.clear()

    def made(self, carry: Any) -> None:
        """`carry` as the chunk finished; None: it ended without pictures."""
        self.chunk, self.carry = None, carry
        self._made.set()

    async def settled(self) -> None:
        """Wait until every chunk has its pictures."""
        await self._made.wait()


class SessionOverlap:
    """`drive.Ahead` of one chunk. Make it when the chunk begins."""

    def __init__(
        self, pending: PendingDecode, generation: int, wanted: Callable[[], bool], go: Callable[[Any], None]
    ) -> None:
        self._pending, self._wanted, self._go = pending, wanted, go
        self._meets = pending.chunk is not None and pending.chunk.generation == generation

    async def met(self) -> Any | None:
        await self._pending.settled()
        return self._pending.carry if self._meets else None

    @property
    def wanted(self) -> bool:
        return self._wanted()

    def go(self, carry: Any) -> None:
        self._go(carry)
