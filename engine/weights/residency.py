"""Whose weights and slots are on the device: brings the card that somebody waits for, lets go those that nobody uses.

    want(card) -> its turn? -> who goes: slots, then components, copied to the host once -> components come, slice by
    slice -> slots -> awake: who waits looks again

Every move is a step on the device, in the background class: it has a price, and runs where it makes nobody late.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor

from ...clock import Clock
from .. import api
from ..caches.weights_io import AllocateSlots, DropComponent, WeightsRow, WriteWeights, taking
from ..cancel import CancelScope, Superseded
from ..card import CardRuntime
from ..device.dispatch import Dispatcher
from .away import WeightsAway, cut
from .turns import CardTurns, Leaving, TurnPlan

log = logging.getLogger(__name__)

KEPT_S = 5.0
"""Seconds for which a card that came stays, so that who waited for it finds it."""
RETRY_S = 5.0
"""Seconds after which a card that could not come is tried again."""
LOOK_S = 0.05


class Residency:
    """`changed` is called when somebody who waits may look again."""

    def __init__(
        self,
        served: Mapping[str, CardRuntime],
        turns: CardTurns,
        away: WeightsAway,
        dispatcher: Dispatcher,
        scope: CancelScope,
        executor: Executor,
        clock: Clock,
    ) -> None:
        self._served, self.turns, self.away = served, turns, away
        self._dispatcher, self._scope, self._executor, self._clock = dispatcher, scope, executor, clock
        self.changed: Callable[[], None] = lambda: None
        self._lock = asyncio.Lock()
        self._held: Counter[str] = Counter()
        self._wanted: list[str] = []
        self._kept: dict[str, float] = {}
        self._resting: dict[str, float] = {}
        self._leaving: frozenset[Leaving] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def awake(self, card: str) -> bool:
        """Whether sessions may come."""
        return self._served[card].pool.slots > 0

    def there(self, card: str, components: tuple[str, ...]) -> bool:
        """Whether steps that need no more than these components may run."""
        turn = self.turns.cards[card]
        return all(name in turn.there and Leaving(card, name) not in self._leaving for name in components)

    def places(self, card: str) -> int:
        """Sessions of the card that fit: now, or once its turn has come."""
        if self.awake(card):
            return self._served[card].pool.slots
        turn = self.turns.turn_of(card, ())
        return 0 if turn is None else turn.slots

    @property
    def pinned(self) -> frozenset[str]:
        """Cards that stay: lived in, in use, or just come."""
        now = self._clock.now()
        return frozenset(
            name
            for name, served in self._served.items()
            if served.pool.taken or self._held[name] or self._kept.get(name, now) > now or self._dispatcher.uses(name)
        )

    def in_the_way(self, card: str) -> tuple[str, ...]:
        """Cards that are lived in and without which it could come."""
        lived_in = [name for name, served in self._served.items() if served.pool.taken]
        return self.turns.in_the_way(card, lived_in)

    @contextlib.contextmanager
    def held(self, card: str) -> Iterator[None]:
        """It stays meanwhile."""
        self._held[card] += 1
        try:
            yield
        finally:
            self._held[card] -= 1

    def want(self, card: str) -> None:
        """Somebody waits for the card: it comes as soon as it can. Say it again as long as that is so."""
        resting = self._resting.get(card, 0.0) > self._clock.now()
        if self.awake(card) or card in self._wanted or resting:
            return
        self._wanted.append(card)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._serve())

    async def wake(self, card: str, stays: bool = True) -> bool:
        """Make the card ready for sessions; False when others are in its way. `stays`: for a while, so that those who
        waited find it. Raises what a step or the disk raises.
        """
        async with self._lock:
            if self.awake(card):
                return True
            turn = self.turns.turn_of(card, self.pinned - {card})
            if turn is None:
                return False
            started = self._clock.now()
            with self._going(turn):
                for leave in turn.leaving:
                    await self._leave(leave)
            await self._come(card, turn.slots)
            self._kept[card] = self._clock.now() + (KEPT_S if stays else 0.0)
            log.info("card '%s' is on the device after %.2f s", card, self._clock.now() - started)
        self.changed()
        return True

    async def until_there(self, served: CardRuntime, components: tuple[str, ...], scope: CancelScope) -> None:
        """Wait until steps that need these components may run; whoever hands one in at once finds them there."""
        card = served.loaded.card.name
        while not self.there(card, components):
            scope.check()
            self.want(card)
            await asyncio.sleep(LOOK_S)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.get_running_loop().run_in_executor(None, self.away.close)

    async def price(self, card: str) -> None:
        """Measure its moves while nobody is there, so that each has a price later. The card is awake and empty."""
        served, turn = self._served[card], self.turns.cards[card]
        for row in taking(served.loaded, turn.slots):
            await self._step(served, row)
        for component in list(turn.there)[:1]:
            for part in cut(served.loaded, component)[:3]:
                await self._step(served, part)

    # ---- inside ----------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Until nobody is wanted; who could not come is wanted again."""
        while self._wanted:
            card = self._wanted[0]
            try:
                await self.wake(card)
            except Superseded:
                return
            except Exception:
                log.exception("card '%s' cannot be brought to the device; tried again in %.0f s", card, RETRY_S)
                self._resting[card] = self._clock.now() + RETRY_S
            finally:
                self._wanted.remove(card)

    @contextlib.contextmanager
    def _going(self, turn: TurnPlan) -> Iterator[None]:
        """From the decision on nobody comes into what will go; what did not go is as it was."""
        self._leaving = frozenset(turn.leaving)
        cards = {leave.card for leave in turn.leaving}
        for card in cards:
            self._served[card].pool.resize(0)
        try:
            yield
        finally:
            self._leaving = frozenset()
            for card in cards:
                self._settle(card)

    def _settle(self, card: str) -> None:
        """Its pool has the slots that are there, if it is awake."""
        turn = self.turns.cards[card]
        self._served[card].pool.resize(turn.slots if turn.awake else 0)

    async def _leave(self, leave: Leaving) -> None:
        served, component = self._served[leave.card], leave.component
        while self._dispatcher.uses(leave.card):
            self._scope.check()
            await asyncio.sleep(LOOK_S)
        if component is None:
            await self._step(served, AllocateSlots(0))
        else:
            await self._copied(served, component)
            await self._step(served, DropComponent(component))
            self.away.went(served.loaded, component, back=False)
        self.turns.left(leave)

    async def _copied(self, served: CardRuntime, component: str) -> None:
        """Its bytes are in the host's memory, or on the disk."""
        if self.away.has(served.loaded, component):
            return
        rows = cut(served.loaded, component)
        for row in rows:
            await self._step(served, row)
        slices, loop = [row.into for row in rows], asyncio.get_running_loop()
        await loop.run_in_executor(self._executor, self.away.put, served.loaded, component, slices)

    async def _come(self, card: str, slots: int) -> None:
        served, turn = self._served[card], self.turns.cards[card]
        for component in turn.away:
            await self._bring(served, component)
        turn.slots = slots
        try:
            for row in taking(served.loaded, slots):
                await self._step(served, row)
        except BaseException:
            turn.slots = 0
            raise
        self.turns.touch(card)
        self._settle(card)

    async def _bring(self, served: CardRuntime, component: str) -> None:
        loaded, there = served.loaded, self.turns.cards[served.loaded.card.name].there
        loop, slices = asyncio.get_running_loop(), self.away.slices(served.loaded, component)
        quick = self.away.in_memory(loaded, component)
        there.add(component)
        try:
            while True:
                part = next(slices, None) if quick else await loop.run_in_executor(self._executor, next, slices, None)
                if part is None:
                    break
                await self._step(served, WriteWeights(component, *part))
        except BaseException:
            if not self._scope.cancelled:
                await self._step(served, DropComponent(component))
            there.discard(component)
            raise
        self.away.went(loaded, component, back=True)

    async def _step(self, served: CardRuntime, row: WeightsRow) -> None:
        key = served.weights_step(row)
        background = api.LatencyClass.BACKGROUND
        await self._dispatcher.run(served.loaded, key, row, self._scope, latency_class=background)
