"""What an engine does beside serving: it keeps its prices on disk. Off the hot path."""

import asyncio

from . import prices
from .served import ServedCard
from .shared import Shared

KEEP_EVERY = 30.0


class Upkeep:
    """`start` once the cards are priced; `close` writes down what was learned since."""

    def __init__(self, served: dict[str, ServedCard], shared: Shared, device: str) -> None:
        self._served, self._shared = served, shared
        self._subjects = {card: prices.subject(one, device) for card, one in served.items()}
        self._written: dict[str, prices.PriceSheet] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._shared.prices is not None:
            self._task = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            await self._write()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(KEEP_EVERY)
            await self._write()

    async def _write(self) -> None:
        """Cards whose prices have moved; the sheet is taken on the loop and written on a thread."""
        loop, folder = asyncio.get_running_loop(), self._shared.prices
        if folder is None:
            return
        for card, served in self._served.items():
            sheet = prices.sheet_of(served, self._shared.costs, self._subjects[card])
            if sheet != self._written.get(card):
                await loop.run_in_executor(self._shared.encoders, folder.write, card, sheet)
                self._written[card] = sheet
