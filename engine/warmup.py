"""Makes a card warm and prices it before the first session: real chunks, batches, the prompt step, the encoder.

The first round touches everything once and is forgotten; what the second measures are the prices sessions are
admitted at, so the first chunk of a session costs no more than the tenth. Where sound prices are stored on disk, the
second round only touches what the first one did not.
"""

import asyncio
import logging
import math
from typing import Any

import numpy as np

from ..models.contract.conditions import Conditions, PromptShare
from ..models.contract.loop import Outcome, StepKind
from . import api, cost_store
from .caches.entry_io import ReadEntries
from .card import CardRuntime
from .device.batch import Batch
from .device.device import Device, run
from .scheduling.costs import StepKey
from .services import Services
from .session.chunk import EngineChunk
from .session.driver import ChunkDriver
from .session.world import SessionWorld

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
    first = await _rehearse(served, services, default, CHUNKS)
    services.costs.forget(card.name)
    served.chunks.clear()
    served.profiles.clear()
    await _rehearse(served, services, default, CHUNKS)
    stored = await _take_over_stored(served, services, device)
    for steps in card.recipe.steps_allowed():
        if steps != default:
            await _rehearse(served, services, steps, CHUNKS_TOUCHED if stored else CHUNKS)
    if not stored:
        await _rehearse(served, services, default, CHUNKS_PRICED, SECONDS_PRICED)
    for key in dict.fromkeys(served.profiles[default]):
        await _price_batches(served, services, device, key, rows=2)
    for key in _unrehearsed(served):
        await _price_batches(served, services, device, key, rows=1)
    if served.loaded.slab is not None:
        await _price_cache_io(served, services, device)
    await _warm_encoder(served, services, first, FRAMES_TOUCHED if stored else FRAMES)
    seconds = services.clock.now() - started
    log.info(
        "card '%s' is warm after %.2f s, its prices were %s", card.name, seconds, "stored" if stored else "measured"
    )
    if (takes := served.load(default)) > served.chunk_seconds:
        lasts = served.chunk_seconds
        log.warning(
            "card '%s' takes %.3f s for a chunk that lasts %.3f s: it is late even alone", card.name, takes, lasts
        )
    if services.prices is not None and not stored:
        sheet = cost_store.sheet_of(served, services.costs, cost_store.subject(served, device.model))
        await asyncio.get_running_loop().run_in_executor(services.encoders, services.prices.write, card.name, sheet)


async def _take_over_stored(served: CardRuntime, services: Services, device: Device) -> bool:
    """Whether there were prices on disk that agree with the few chunks made so far; then they are known now."""
    folder, card, steps = services.prices, served.loaded.card.name, served.default_steps
    if folder is None:
        return False
    subject = cost_store.subject(served, device.model)
    sheet = await asyncio.get_running_loop().run_in_executor(services.encoders, folder.read, card, subject)
    chunk = next((chunk for chunk in sheet.chunks if chunk.steps == steps), None) if sheet else None
    if sheet is None or chunk is None:
        return False
    then, now = min(chunk.took_us) / 1e6, min(served.chunks[steps].recent)
    if max(then, now) > CREDIBLE * min(then, now) + NOISE:
        log.warning("stored prices of '%s' are ignored: a chunk took %.4f s, now it takes %.4f s", card, then, now)
        return False
    cost_store.restore(sheet, served, services.costs)
    return True


async def _rehearse(
    served: CardRuntime, services: Services, steps: int, count: int, seconds: float = math.inf
) -> Outcome[Any]:
    """Make `count` chunks of a world that nobody watches, or fewer when `seconds` are over; returns the last one."""
    clock, dispatcher, loaded = services.clock, services.dispatcher, served.loaded
    until = clock.now() + seconds
    encoded = await dispatcher.run(loaded, served.prompt_step(), loaded.card.suggestions[0], services.scope)
    world = SessionWorld(served, api.Open("", loaded.card.name, seed=0, steps=steps))
    driver = ChunkDriver(world, dispatcher, api.LatencyClass.INTERACTIVE, services.scope, lambda key: encoded.result)
    try:
        for number in range(count):
            chunk = EngineChunk(number, _idle(served), services.scope, clock.now())
            outcome = await driver.drive(chunk)
            served.finished(steps, chunk.steps, chunk.shares)
            if clock.now() >= until:
                break
    finally:
        await driver.close()
        world.leave_slot()
    return outcome


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
    row = ReadEntries(slot.number, tuple(range(served.pool.spec.window)))
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
