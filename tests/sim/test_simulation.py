"""A day at the door in virtual time: mixed classes arrive in bursts, steer, redirect and leave; the promises must hold.

light   four steps of 20 ms, a chunk a second       heavy   four steps of 60 ms, a chunk in two seconds

A deadline is missed by a chunk that is later than the playout clock absorbs: a tenth of a frame. Less than that is in
the plan (`card.Lead`) and shows in no frame interval.
"""

import asyncio
import random
from dataclasses import dataclass, field

import pytest
from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.engine import Engine
from worldroom.engine.output.playout import ABSORBED
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import started
from worldroom.tests.sim_card import sim_card

CAP = 0.9
MISSED_AT_MOST = 0.05  # of one session's chunks, and 5 in a short stay
MISSED_BY_ALL = 0.02
LEARNING = 120.0  # the engine learns how much its sessions wait for each other from their first late chunks
GAP_AT_MOST = 4 * (2.0 + 0.3) + 2.0  # each of four steps ages 2 s and may meet one step and one chunk; then the playout
STEP = {"light": 0.020, "heavy": 0.060}
FPS = 2
CLASSES = (api.LatencyClass.INTERACTIVE,) * 3 + (api.LatencyClass.STREAM, api.LatencyClass.BACKGROUND)


@dataclass(slots=True)
class Visitor:
    """Answers at once; keeps counts, not events."""

    engine: Engine
    session: str
    latency_class: api.LatencyClass
    arrived: float = 0.0
    epoch: int = 0
    chunks: int = 0
    missed: int = 0
    last: float = 0.0
    longest_gap: float = 0.0
    faults: list[api.Fault] = field(default_factory=list)

    def hear(self, event: api.Event) -> None:
        match event:
            case api.ChunkDue():
                conditions = api.Conditions(self.epoch, (), (0.0, 0.0), (), 1, 0)
                self.engine.post(api.Begin(self.session, event.chunk, conditions))
            case api.ChunkDone():
                now = asyncio.get_running_loop().time()
                self.longest_gap = max(self.longest_gap, now - self.last)
                self.last = now
                self.chunks += 1
                self.missed += event.late_us > ABSORBED / FPS * 1e6
            case api.Fault():
                self.faults.append(event)

    async def stay(self, seconds: float, dice: random.Random) -> None:
        self.last = self.arrived = asyncio.get_running_loop().time()
        until = self.last + seconds
        while (now := asyncio.get_running_loop().time()) < until:
            await asyncio.sleep(min(until - now, dice.expovariate(1 / 10)))
            if self.latency_class is api.LatencyClass.INTERACTIVE and dice.random() < 0.3:
                self.epoch += 1
                self.engine.post(api.Supersede(self.session, self.epoch))
        self.engine.post(api.Close(self.session))


@dataclass(slots=True)
class Day:
    """Everyone who came, and the largest share that was promised after any admission."""

    engine: Engine
    visitors: list[Visitor] = field(default_factory=list)
    refused: int = 0
    share_max: float = 0.0
    slots_max: int = 0

    async def come(self, number: int, dice: random.Random) -> None:
        card, latency_class = dice.choice(("light", "light", "heavy")), dice.choice(CLASSES)
        visitor = Visitor(self.engine, f"s{number}", latency_class)
        answer = await self.engine.open(api.Open(visitor.session, card, 1, latency_class), visitor.hear)
        if isinstance(answer, api.Refused):
            self.refused += 1
            return
        capacity = self.engine.capacity()
        self.share_max = max(self.share_max, sum(entry.share_used for entry in capacity))
        self.slots_max = max(self.slots_max, *(entry.sessions for entry in capacity))
        self.visitors.append(visitor)
        await visitor.stay(dice.uniform(20, 120), dice)


def uneven(dice: random.Random) -> object:
    def cost(batch: Batch) -> float:
        if batch.kind is StepKind.PROMPT_ENCODE:
            return 0.001
        one = STEP[batch.loaded.card.name] * dice.uniform(0.95, 1.05)
        return one * (1 + 0.8 * (len(batch.rows) - 1))

    return cost


async def day(seconds: float, seed: int) -> Day:
    dice = random.Random(seed)
    spec = EngineSpec(slots=6, max_rows=4, share_cap=CAP, seed=seed)
    engine, _ = await started(uneven(dice), (sim_card("light"), sim_card("heavy", per_chunk=4)), spec)  # type: ignore[arg-type]
    scene, stays, number = Day(engine), [], 0
    while asyncio.get_running_loop().time() < seconds:
        for _ in range(dice.choice((1, 1, 1, 6))):
            stays.append(asyncio.create_task(scene.come(number, random.Random(f"{seed} {number}"))))
            number += 1
        await asyncio.sleep(dice.expovariate(1 / 15))
    await asyncio.gather(*stays)
    await asyncio.sleep(5)
    return scene


def check(scene: Day) -> None:
    assert scene.share_max <= CAP + 1e-9, "more was promised than the cap allows"
    assert scene.slots_max <= 6
    assert scene.refused > 0, "the day is full enough to refuse"
    assert not any(visitor.faults for visitor in scene.visitors)
    for visitor in scene.visitors:
        name = f"{visitor.session} ({visitor.latency_class})"
        assert visitor.longest_gap <= GAP_AT_MOST, f"{name} waited {visitor.longest_gap:.1f} s"
        if visitor.latency_class is not api.LatencyClass.BACKGROUND and visitor.arrived > LEARNING:
            allowed = max(5, MISSED_AT_MOST * visitor.chunks)
            assert visitor.missed <= allowed, f"{name} missed {visitor.missed} of {visitor.chunks}"
    guaranteed = [v for v in scene.visitors if v.latency_class is not api.LatencyClass.BACKGROUND]
    assert sum(v.missed for v in guaranteed) <= MISSED_BY_ALL * sum(v.chunks for v in guaranteed)


async def scene(seconds: float, seed: int) -> None:
    played = await day(seconds, seed)
    check(played)
    assert all(entry.pool_bytes_used == 0 and entry.queue_depth == 0 for entry in played.engine.capacity())
    played.engine.check_integrity()
    await played.engine.close()


def test_five_minutes_of_mixed_sessions_keep_every_promise() -> None:
    run(scene(300, 1))


@pytest.mark.slow
def test_a_hundred_thousand_seconds_of_mixed_sessions_keep_every_promise() -> None:
    run(scene(100_000, 2))
