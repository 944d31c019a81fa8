"""One trace on one simulated device: the engine as it serves, in virtual time, from the first arrival to the last.

What is real: admission, line, scheduler, batches, sessions, pacing, checkpoint rules, the frame publisher. What is not:
the device's work, the encoder's, and people. The clock of a trace starts when the engine is warm and priced.
"""

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..clock import LoopClock
from ..engine.engine import Engine
from ..engine.spec import EngineSpec
from ..engine.weights.away import WeightsAway
from ..models.contract.placement import Placement
from . import virtual_time
from .device import PLENTY, SimulatedDevice
from .encoder import encoder_of
from .person import SimulatedPerson
from .prices import CardPrices, cost_by
from .trace import Trace

HANDOVER = 0.0003
"""Seconds between a batch's end and the engine's next decision, on a host with a core to spare."""
SAMPLES = 240


@dataclass(frozen=True, slots=True)
class Setup:
    """`cards` share one device; `spec` is the engine's, its `memory` the device's, where a sheet says so."""

    cards: tuple[CardPrices, ...]
    device: str
    spec: EngineSpec

    @property
    def by_name(self) -> Mapping[str, CardPrices]:
        return {prices.card.name: prices for prices in self.cards}


@dataclass(frozen=True, slots=True)
class LoadSample:
    """How it stood at one moment; `worked`: device-seconds until then, `chunks` and `late`: counted until then."""

    at: float
    people: int
    waiting: int
    asleep: int
    queue: int
    memory: int
    worked: float
    chunks: int
    late: int


@dataclass(frozen=True, slots=True)
class Played:
    """What happened. `worked`: device-seconds by queue; `batches` and `rows`: what the device ran meanwhile."""

    trace: Trace
    people: tuple[SimulatedPerson, ...]
    samples: tuple[LoadSample, ...]
    worked: Mapping[Placement, float]
    batches: int
    rows: int
    chunk_prices: Mapping[str, float]
    sessions_max: Mapping[str, int]
    memory_budget: int


def play(setup: Setup, trace: Trace) -> Played:
    """The whole trace; the same arguments give the same."""
    return virtual_time.run(_play(setup, trace))


async def _play(setup: Setup, trace: Trace) -> Played:
    loop, by_name = asyncio.get_running_loop(), setup.by_name
    weights = sum(prices.bytes.weights for prices in setup.cards)
    device = SimulatedDevice(cost_by(by_name), setup.device, HANDOVER, weights=weights)
    encode = {prices.card.frame: prices.encode for prices in setup.cards}
    encoder = encoder_of(encode.__getitem__, setup.spec.encoder_threads)
    loaded = tuple(prices.loaded() for prices in setup.cards)
    engine = Engine(loaded, LoopClock(loop), setup.spec, device, encoder, away=WeightsAway(PLENTY, Path()))
    await engine.start()
    start, warm = loop.time(), dict(device.worked)
    batches, rows = device.batches, device.rows
    prices = {info.name: info.price_us / 1e6 for info in engine.cards()}
    budget = sum(entry.pool_bytes for entry in engine.capacity())
    most = {entry.card: entry.sessions_max for entry in engine.capacity()}
    turns = itertools.cycle(by_name)
    people = [
        SimulatedPerson(engine, visit, visit.card or turn, number, start)
        for number, (visit, turn) in enumerate(zip(trace.visits, turns, strict=False), 1)
    ]
    stays = [loop.create_task(person.stay()) for person in people]
    samples = await _sampled(engine, device, start, trace.seconds)
    for stay in stays:  # those who have not left yet
        stay.cancel()
    for ended in await asyncio.gather(*stays, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
    worked = {where: seconds - warm[where] for where, seconds in device.worked.items()}
    batches, rows = device.batches - batches, device.rows - rows
    await engine.close()
    return Played(trace, tuple(people), samples, worked, batches, rows, prices, most, budget)


async def _sampled(engine: Engine, device: SimulatedDevice, start: float, seconds: float) -> tuple[LoadSample, ...]:
    loop, samples, base = asyncio.get_running_loop(), [], sum(device.worked.values())
    for number in range(1, SAMPLES + 1):
        await asyncio.sleep(start + seconds * number / SAMPLES - loop.time())
        capacity = engine.capacity()
        samples.append(
            LoadSample(
                at=seconds * number / SAMPLES,
                people=sum(entry.sessions for entry in capacity),
                waiting=capacity[0].waiting,
                asleep=sum(entry.asleep for entry in capacity),
                queue=capacity[0].queue_depth,
                memory=sum(entry.pool_bytes_used for entry in capacity),
                worked=sum(device.worked.values()) - base,
                chunks=sum(entry.chunks_done for entry in capacity),
                late=sum(entry.chunks_late for entry in capacity),
            )
        )
    return tuple(samples)
