"""What an engine does beside serving: inspects its pools, gives memory back, keeps prices on disk, and measures them
again while nobody is there. Off the hot path."""

import asyncio
from collections.abc import Callable

from . import cost_store, heap
from .caches.integrity import IntegrityCheck
from .card import CardRuntime
from .device.batch import Batch
from .device.device import Device, run
from .scheduling.costs import WINDOW
from .services import Services

INSPECT_EVERY = 0.23
INSPECT_LATEST = 2.0
INSPECT_BUDGET = 0.0005
STORE_EVERY = 30.0
PRICE_FIRST, PRICE_SELDOM = 10.0, 640.0
"""Seconds without anybody until prices are measured again, at first; each round that is not disturbed doubles them."""


class Maintenance:
    """`start` once the cards are priced; `close` writes down what was learned since."""

    def __init__(
        self, served: dict[str, CardRuntime], services: Services, device: Device, vacant: Callable[[], bool]
    ) -> None:
        self._served, self._services, self._device, self._vacant = served, services, device, vacant
        priced = {} if services.prices is None else served
        self._subjects = {card: cost_store.subject(one, device.model) for card, one in priced.items()}
        self._written: dict[str, cost_store.PriceSheet] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._released = False
        self.inspection = IntegrityCheck((services.features, *(one.pool for one in served.values())))

    def released(self) -> None:
        """A session is gone: its memory goes back to the system at the next quiet moment."""
        self._released = True

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks += [loop.create_task(self._inspect()), loop.create_task(self._price())]
        if self._services.prices is not None:
            self._tasks.append(loop.create_task(self._store_prices()))

    async def close(self) -> None:
        if self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
            await self._write()

    async def _inspect(self) -> None:
        """Every so often, when nothing waits for the device; where that never happens, at the latest after a while."""
        clock, dispatcher = self._services.clock, self._services.dispatcher
        latest = clock.now() + INSPECT_LATEST
        while True:
            await asyncio.sleep(INSPECT_EVERY)
            if dispatcher.idle or clock.now() >= latest:
                self.inspection.go_on(clock.now, INSPECT_BUDGET)
                latest = clock.now() + INSPECT_LATEST
                if self._released:
                    self._released = False
                    await asyncio.get_running_loop().run_in_executor(self._services.encoders, heap.give_back)

    async def _price(self) -> None:
        wait = PRICE_FIRST
        while True:
            await asyncio.sleep(wait)
            if not self._vacant():
                wait = PRICE_FIRST
                continue
            for card, served in self._served.items():
                if self._services.weights.awake(card):
                    with self._services.weights.held(card):
                        await price_again(served, self._services, self._device, self._vacant)
            wait = min(2 * wait, PRICE_SELDOM)

    async def _store_prices(self) -> None:
        while True:
            await asyncio.sleep(STORE_EVERY)
            await self._write()

    async def _write(self) -> None:
        """Cards whose prices have moved; the sheet is taken on the loop and written on a thread."""
        loop, folder = asyncio.get_running_loop(), self._services.prices
        if folder is None:
            return
        for card, served in self._served.items():
            sheet = cost_store.sheet_of(served, self._services.costs, self._subjects[card])
            if sheet != self._written.get(card):
                await loop.run_in_executor(self._services.encoders, folder.write, card, sheet)
                self._written[card] = sheet


async def price_again(served: CardRuntime, services: Services, device: Device, vacant: Callable[[], bool]) -> None:
    """Measure a chunk's steps as often as a price looks back, as long as nobody is there: nothing older counts then.

    What was measured while the machine was busy would else refuse people until the card has run for long.
    """
    steps = served.default_steps
    profile = served.profiles[steps]
    for _ in range(WINDOW):
        took: list[float] = []
        for key in profile:
            if not vacant():
                return
            rows, views = zip(*served.loaded.runtime.warm_up_rows(key.kind, 1), strict=True)
            done = await run(device, Batch(served.loaded, key.loop, key.kind, rows, views))
            services.costs.observe(key, 1, done.seconds)
            took.append(done.seconds)
        served.finished(steps, profile, took)
