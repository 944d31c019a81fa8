"""A card's prompt loop, run beside the chunks of one world: what it writes steers a few chunks later.

    chunks   0  1  2  3 | 4  5  6  7 | 8 ..      run r begins with chunk r * every, from the carry before that chunk;
    runs     [ run 0  ]   [ run 1  ]   [ ..      its text steers from chunk (r + 1) * every on, which waits for it

A run is a task of its own; its steps wait in the same queues as everybody's, due when the text is. A run under way is
no part of a snapshot: it is begun again from what it was asked, and writes the same.
"""

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from ...models.contract.cache import CacheView
from ...models.contract.loop import PromptAsk, PromptLoop, PromptOutcome, WorkPlan
from .. import api
from ..caches.snapshot import PromptProgress
from ..cancel import CancelScope
from ..device.dispatch import Dispatcher
from ..drive import drive_loop
from ..scheduling.costs import StepKey
from .chunk import EngineChunk
from .world import SessionWorld


@dataclass(slots=True)
class _Run:
    """One run: what it was asked, until when its text is needed, and the task that makes it, once it is begun."""

    ask: PromptAsk[Any]
    due: float
    scope: CancelScope
    task: "asyncio.Task[PromptOutcome[Any]] | None" = None


class PromptWriter:
    """See the module docstring. Its card has a prompt loop."""

    def __init__(
        self, world: SessionWorld, dispatcher: Dispatcher, latency_class: api.LatencyClass, scope: CancelScope
    ) -> None:
        self._world, self._dispatcher, self._latency_class, self._scope = world, dispatcher, latency_class, scope
        self._text = ""
        self._feature: object | None = None
        self._run: _Run | None = None
        self._generation = world.generation
        self._tasks: set[asyncio.Task[PromptOutcome[Any]]] = set()

    async def before(self, chunk: EngineChunk) -> object | None:
        """The embedding that steers this chunk, None while nothing is written; begins the run that begins with it.

        Raises what a step of the run before raised; that run is made again when the chunk is.
        """
        world = self._world
        if self._generation != world.generation or world.progress is not None:
            self._begin_anew(chunk)
        number, place = divmod(chunk.number, world.served.loaded.card.prompt_every)
        if place == 0 and (self._run is None or self._run.ask.run != number):
            carry = None
            if self._run is not None:
                outcome = await self._outcome(self._run)
                self._text, self._feature, carry = outcome.text, None, outcome.carry
            ask: PromptAsk[Any] = PromptAsk(world.seed, world.branch, number, carry, world.carry)
            self._run = self._asked(ask, chunk)
        if self._run is not None:
            self._start(self._run)
            if chunk.deadline == math.inf:  # a warm-up, a rollout: prices are not known yet, so nothing competes
                await self._outcome(self._run)
        if self._text and self._feature is None:
            self._feature = await self._encoded(self._text, chunk)
        return self._feature

    def progress(self) -> PromptProgress | None:
        """For a snapshot at this boundary; None before the first run."""
        if self._run is None or self._generation != self._world.generation:
            return self._world.progress
        return PromptProgress.of(self._world.served.loaded, self._text, self._run.ask)

    async def close(self) -> None:
        """Wait until no step of it is on the device."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _asked(self, ask: PromptAsk[Any], chunk: EngineChunk) -> _Run:
        """A run whose text is needed by the chunk that begins the next one."""
        served = self._world.served
        due = chunk.deadline + served.loaded.card.prompt_every * served.chunk_seconds
        return _Run(ask, due, CancelScope(self._scope))

    def _begin_anew(self, chunk: EngineChunk) -> None:
        """The world is another one: a new one, or one that was restored."""
        if self._run is not None:
            self._run.scope.cancel()
            self._dispatcher.withdraw()
        self._generation, self._text, self._feature, self._run = self._world.generation, "", None, None
        progress, self._world.progress = self._world.progress, None
        if progress is not None:
            self._text = progress.text
            ask = progress.ask(self._world.served.loaded, self._world.seed, self._world.branch)
            self._run = self._asked(ask, chunk)

    def _start(self, run: _Run) -> "asyncio.Task[PromptOutcome[Any]]":
        if run.task is None:
            run.task = asyncio.get_running_loop().create_task(self._write(run))
            self._tasks.add(run.task)
            run.task.add_done_callback(self._ended)
        return run.task

    def _ended(self, task: "asyncio.Task[PromptOutcome[Any]]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever needs the text raises it

    async def _outcome(self, run: _Run) -> PromptOutcome[Any]:
        task = self._start(run)
        try:
            return await task
        except Exception:
            run.task = None
            raise

    async def _write(self, run: _Run) -> PromptOutcome[Any]:
        loaded = self._world.served.loaded
        loop: PromptLoop[Any, Any, Any, Any] | None = loaded.prompt_loop
        assert loop is not None, "the card has one"
        seconds = 0.0

        async def execute(plan: WorkPlan[Any], view: CacheView | None) -> Any:
            nonlocal seconds
            ran = await self._step(self._world.served.step_key(plan, loaded.card.prompt_loop), plan.row, run)
            seconds += ran.seconds
            return ran.result

        try:
            outcome = await drive_loop(loop, run.ask, execute, run.scope)
        finally:
            self._dispatcher.release(run.scope)
        self._world.served.writing.observe(seconds)
        return outcome

    async def _encoded(self, text: str, chunk: EngineChunk) -> object:
        served = self._world.served
        ran = await self._dispatcher.run(
            served.loaded,
            served.prompt_step(),
            text,
            chunk.scope,
            None,
            self._world.session,
            self._latency_class,
            chunk.latest_start,
            chunk.deadline,
        )
        feature: object = ran.result
        return feature

    async def _step(self, key: StepKey, row: Any, run: _Run) -> Any:
        served = self._world.served
        return await self._dispatcher.run(
            served.loaded,
            key,
            row,
            run.scope,
            None,
            self._world.session,
            self._latency_class,
            run.due - served.writing.conservative,
            run.due,
        )
