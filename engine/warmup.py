"""Makes a card warm and prices it before the first session: real chunks, batches, the prompt step, the encoder.

The first round touches everything once and is forgotten; what the second measures are the prices sessions are
admitted at, so the first chunk of a session costs no more than the tenth. Where sound prices are kept on disk, the
second round only touches what the first one did not.
"""

import asyncio
import logging
import math
from typing import Any

import numpy as np

from ..models.contract.cache import CacheView
from ..models.contract.conditions import Conditions, PromptShare
from ..models.contract.loop import Ask, Outcome, StepKind, WorkPlan
from . import api, cost_store
from .caches.entry_io import ReadEntries
from .card import CardRuntime
from .device.device import Batch, Device, run
from .device.dispatch import QueuedStep, StepRun
from .drive import drive_chunk
from .scheduling.costs import StepKey
from .scheduling.scheduler import Ticket
from .services import Services

log = logging.getLogger(__name__)

CHUNKS = 3
CHUNKS_PRICED = 24
CHUNKS_TOUCHED = 2
SECONDS_PRICED = 1.0
BATCHES = 3
FRAMES, FRAMES_TOUCHED = 12, 3
CREDIBLE, NOISE = 2.0, 0.0005
"""Kept prices are believed when the fastest chunk of now and of then differ by no more than this factor and noise."""


async def warm_up(served: CardRuntime, services: Services, device: Device) -> None:
    """Run the card alone. Needs a dispatcher that serves its queue and no session."""
    started, card, default = services.clock.now(), served.loaded.card, served.default_steps
    first = await _Rehearsal(served, services).chunks(default, CHUNKS)
    services.costs.forget(card.name)
    served.chunks.clear()
    served.profiles.clear()
    await _Rehearsal(served, services).chunks(default, CHUNKS)
    kept = await _take_over_kept(served, services, device)
    for steps in card.recipe.steps_allowed():
        if steps != default:
            await _Rehearsal(served, services).chunks(steps, CHUNKS_TOUCHED if kept else CHUNKS)
    if not kept:
        await _Rehearsal(served, services).chunks(default, CHUNKS_PRICED, SECONDS_PRICED)
    for key in dict.fromkeys(served.profiles[default]):
        await _price_batches(served, services, device, key, rows=2)
    for key in _unrehearsed(served):
        await _price_batches(served, services, device, key, rows=1)
    if served.loaded.slab is not None:
        await _price_cache_io(served, services, device)
    await _warm_encoder(served, services, first, FRAMES_TOUCHED if kept else FRAMES)
    seconds = services.clock.now() - started
    log.info("card '%s' is warm after %.2f s, its prices were %s", card.name, seconds, "kept" if kept else "measured")
    if services.prices is not None and not kept:
        sheet = cost_store.sheet_of(served, services.costs, cost_store.subject(served, device.name))
        await asyncio.get_running_loop().run_in_executor(services.encoders, services.prices.write, card.name, sheet)


async def _take_over_kept(served: CardRuntime, services: Services, device: Device) -> bool:
    """Whether there were prices on disk that agree with the few chunks made so far; then they are known now."""
    folder, card, steps = services.prices, served.loaded.card.name, served.default_steps
    if folder is None:
        return False
    subject = cost_store.subject(served, device.name)
    sheet = await asyncio.get_running_loop().run_in_executor(services.encoders, folder.read, card, subject)
    chunk = next((chunk for chunk in sheet.chunks if chunk.steps == steps), None) if sheet else None
    if sheet is None or chunk is None:
        return False
    then, now = min(chunk.took_us) / 1e6, min(served.chunks[steps].recent)
    if max(then, now) > CREDIBLE * min(then, now) + NOISE:
        log.warning("kept prices of '%s' are ignored: a chunk took %.4f s, now it takes %.4f s", card, then, now)
        return False
    cost_store.restore(sheet, served, services.costs)
    return True


class _Rehearsal:
    """A session without a person: slot, prompt and carry for a few chunks."""

    def __init__(self, served: CardRuntime, services: Services) -> None:
        self._served, self._services = served, services
        self._steps: list[StepKey] = []
        self._seconds = 0.0

    async def chunks(self, steps: int, count: int, seconds: float = math.inf) -> Outcome[Any]:
        """Make `count` chunks, or fewer when `seconds` are over; returns the last one."""
        served, until = self._served, self._services.clock.now() + seconds
        slot = served.pool.acquire()
        writes, carry = served.writes(slot), None
        feature = (await self._run(served.prompt_step(), served.loaded.card.suggestions[0], None)).result
        try:
            for number in range(count):
                self._steps, self._seconds = [], 0.0
                ask: Ask[Any] = Ask(
                    0, 0, number, steps, _idle(served), ((feature, 1.0),), carry, served.pool.count(slot)
                )
                outcome = await drive_chunk(
                    served.loaded.loop, ask, writes, self._execute, self._services.scope, served.loaded.card.frame
                )
                carry = outcome.carry
                served.finished(steps, self._steps, self._seconds)
                if self._services.clock.now() >= until:
                    break
        finally:
            served.pool.free(slot)
        return outcome

    async def _execute(self, plan: WorkPlan[Any], view: CacheView | None) -> Any:
        key = self._served.step_key(plan)
        self._steps.append(key)
        ran = await self._run(key, plan.row, view)
        self._seconds += ran.seconds
        return ran.result

    async def _run(self, key: StepKey, row: Any, view: CacheView | None) -> StepRun:
        services = self._services
        ticket = Ticket(
            number=services.dispatcher.number(),
            session="",
            key=key,
            latency_class=api.LatencyClass.INTERACTIVE,
            queued=services.clock.now(),
            latest_start=math.inf,
            deadline=math.inf,
            remaining=0.0,
        )
        return await services.dispatcher.submit(ticket, QueuedStep(self._served.loaded, row, view, services.scope))


def _idle(served: CardRuntime) -> Conditions:
    controls = (0.0,) * len(served.loaded.card.controls)
    share = PromptShare(served.prompt_key(served.loaded.card.suggestions[0]), 1.0)
    return Conditions(epoch=0, controls=controls, pointer=(0.0, 0.0), prompts=(share,), prompt_version=1, input_seq=0)


def _unrehearsed(served: CardRuntime) -> list[StepKey]:
    """Step kinds that only some chunks have (an opening picture, a rebuilt cache); priced whatever their shape."""
    steps = dict.fromkeys((loop.name, kind) for loop in served.loaded.card.loops for kind in loop.steps)
    rehearsed = {(key.loop, key.kind) for profile in served.profiles.values() for key in profile}
    return [served.key(loop, kind) for loop, kind in steps if (loop, kind) not in rehearsed]


async def _price_batches(served: CardRuntime, services: Services, device: Device, key: StepKey, rows: int) -> None:
    """Measure `rows` rows and more: one row of what is in every chunk was measured there."""
    while rows <= min(services.spec.max_rows, served.pool.slots):
        work = served.loaded.runtime.warm_up_rows(key.kind, rows)
        rows_made, views = zip(*work, strict=True)
        batch = Batch(served.loaded, key.loop, key.kind, rows_made, views)
        await _price(services, device, key, batch)
        rows *= 2


async def _price_cache_io(served: CardRuntime, services: Services, device: Device) -> None:
    """Measure reading a full window, as a checkpoint does."""
    slot = served.pool.acquire()
    row = ReadEntries(slot, tuple(range(served.pool.spec.window)))
    try:
        await _price(
            services, device, served.cache_step(), Batch(served.loaded, "", StepKind.CACHE_IO, (row,), (None,))
        )
    finally:
        served.pool.free(slot)


async def _price(services: Services, device: Device, key: StepKey, batch: Batch) -> None:
    """Run the batch once to make it warm, then to measure it where its price is not known yet."""
    rows = len(batch.rows)
    await run(device, batch)
    for _ in range(0 if services.costs.measured(key, rows) else BATCHES):
        services.costs.observe(key, rows, (await run(device, batch)).seconds)


async def _warm_encoder(served: CardRuntime, services: Services, outcome: Outcome[Any], frames: int) -> None:
    loop, frame = asyncio.get_running_loop(), served.loaded.card.frame
    encoder = await loop.run_in_executor(
        services.encoders, services.encoder, frame, services.spec.kbps, services.spec.kbps_max
    )
    picture = np.asarray(outcome.frames[0])
    for number in range(frames):
        started = services.clock.now()
        await loop.run_in_executor(services.encoders, encoder.encode, picture, number * 3000, number == 2)
        if number >= 2:
            served.encoding.observe(services.clock.now() - started)
