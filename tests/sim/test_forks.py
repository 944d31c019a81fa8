"""A world of seven gibibytes becomes four, on a simulated device: how soon each is seen, and what is copied for it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.devices import DATA_SHEETS
from worldroom.models.holding import GB
from worldroom.simulation.device import SimulatedDevice
from worldroom.simulation.encoder import BlankEncoder
from worldroom.simulation.prices import cost_by
from worldroom.simulation.roofline import computed
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, until

CARD, DEVICE = "self-forcing-1.3b", DATA_SHEETS["h200"]
FUTURES = 4
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Forked:
    """`chunks`: made by the leading world from asking until every future had its first. `copies`: steps that read or
    wrote entries meanwhile. `grown`: bytes of the pool, by entries that every future has written since.
    """

    chunks: int
    copies: int
    grown: dict[int, int]


async def forked(card: LoadedCard, device: SimulatedDevice) -> Forked:
    spec = EngineSpec(slots=FUTURES, share_cap=1.0, checkpoint_seconds=1e9, checkpoint_chunks=1 << 30)
    engine = Engine((card,), LoopClock(asyncio.get_running_loop()), spec, device, BlankEncoder)
    await engine.start()
    pool = engine.runtimes[CARD].pool
    leads = Person(engine, "leads", controls=lambda chunk: ())
    assert isinstance(await leads.open(CARD, latency_class=api.LatencyClass.BACKGROUND), api.Opened)
    await until(lambda: len(leads.done) > pool.spec.window, within=60.0)

    names = [f"future {number}" for number in range(1, FUTURES)]
    people = {name: Person(engine, name, epoch=epoch, key=leads.key) for epoch, name in enumerate(names, 1)}
    for person in people.values():
        person.controls = leads.controls
    branches = tuple(api.Branch(name, noise, people[name].epoch) for noise, name in enumerate(names, 1))
    used, done, ran = pool.bytes_used, len(leads.done), len(engine.steps())
    refused = await engine.fork(
        api.ForkSession("leads", branches), lambda event: people[event.session].hear(event), lambda _: None
    )
    assert refused is None, refused
    grown = {0: pool.bytes_used - used}
    chunks = 0
    for written in range(1, pool.spec.window + 2):
        await until(partial(_all_made, [*people.values()], written), within=60.0)
        chunks = chunks or len(leads.done) - done
        grown[written] = pool.bytes_used - used
    copies = sum(step.kind == StepKind.CACHE_IO for step in engine.steps()[ran:])
    engine.check_integrity()
    await engine.close()
    return Forked(chunks, copies, grown)


def _all_made(people: Sequence[Person], chunks: int) -> bool:
    return all(len(person.done) >= chunks for person in people)


def test_four_futures_of_a_world_of_seven_gibibytes_copy_only_what_each_writes() -> None:
    prices = computed(CARD, DEVICE)
    cache = prices.card.cache
    assert cache is not None and 7 * GIB < cache.bytes_per_session < 8 * GIB

    async def main() -> Forked:
        device = SimulatedDevice(cost_by({CARD: prices}), DEVICE.name, total=DEVICE.memory_gb * GB)
        return await forked(replace(prices.loaded(), shares=True), device)

    done = run(main())
    others = FUTURES - 1
    assert done.chunks <= 3 and done.copies == 0
    assert done.grown == {
        written: others * (cache.carry_bytes + (min(written, cache.window) + 1) * cache.bytes_per_entry)
        for written in range(cache.window + 2)
    }, "an entry to write into, and those that were written since"
