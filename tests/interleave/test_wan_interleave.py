"""A real family on the engine: worlds with sinks and rebuilt caches make together what each makes alone.

Chunks are cancelled at random moments; frames come nine, then twelve at a time and leave one by one.
"""

import asyncio
import random
from dataclasses import dataclass, field, replace

import pytest
import torch
from worldroom.engine import api
from worldroom.engine.core import Engine
from worldroom.engine.device.worker import Batch
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.conditions import Conditions, PromptShare
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.parity.session import ChunkInput, Session
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.parity_rollout import loaded, twin
from worldroom.tests.fake_engine import Person, started
from worldroom.tests.virtual_time import run

torch.set_num_threads(1)
FOX, STORM = "a fox in snow", "a lighthouse in a storm"
CHUNKS = 7


@pytest.fixture(scope="module")
def card() -> LoadedCard:
    spec = twin(SPECS["longlive-1.3b"])
    plan = replace(spec.rollout, sigmas=spec.rollout.sigmas[:2])
    return loaded(replace(spec, plan=plan, vae=replace(spec.vae, width=4)))


@dataclass(slots=True)
class Fickle(Person):
    """Turns to another prompt at chunk `at`."""

    at: int = 4
    keys: dict[int, str] = field(default_factory=dict)

    def hear(self, event: api.Event) -> None:
        if isinstance(event, api.PromptEncoded):
            self.keys[event.version] = event.key
            if len(self.keys) < 2:
                self.engine.post(api.EncodePrompt(self.session, 2, STORM))
                return
        Person.hear(self, event)

    def answer(self) -> None:
        if self.due is None or len(self.keys) < 2 or not self.answers:
            return
        due, self.due = self.due, None
        version = 1 + (due.chunk >= self.at)
        share = (PromptShare(self.keys[version], 1.0),)
        self.engine.post(
            api.Begin(self.session, due.chunk, Conditions(self.epoch, (), (0.0, 0.0), share, version, due.chunk))
        )


def alone(card: LoadedCard, seed: int, at: int, chunks: int) -> list[str]:
    inputs = [ChunkInput((), (0.0, 0.0), STORM if chunk >= at else FOX) for chunk in range(chunks)]
    return [outcome.digest for outcome in Session(card, 0, seed, inputs, card.runtime.encode_prompt).run()]


async def disturb(driver: Fickle, rng: random.Random) -> None:
    while len(driver.done) < CHUNKS:
        await asyncio.sleep(rng.uniform(0.05, 1.5))
        driver.supersede()


@pytest.mark.parametrize("seed", [1, 2])
def test_interleaved_worlds_make_what_each_makes_alone(card: LoadedCard, seed: int) -> None:
    async def scene() -> None:
        rng = random.Random(seed)

        def cost(batch: Batch) -> float:
            return rng.choice((0.02, 0.03, 0.04))

        spec = EngineSpec(slots=3, max_rows=4, share_cap=1.0, seed=seed)
        engine, device = await started(cost, (card,), spec=spec)
        device.ran.clear()
        people = [Fickle(engine, f"s{n}", FOX, at=3 + n) for n in range(3)]
        for n, driver in enumerate(people):
            assert isinstance(await driver.open(card.card.name, seed=10 * seed + n), api.Opened)
        await asyncio.gather(*(disturb(driver, rng) for driver in people))
        for driver in people:
            engine.post(api.Close(driver.session))
        await asyncio.sleep(1)
        engine.check_integrity()
        await engine.close()
        assert sum(len(driver.cancelled) for driver in people) > 0
        assert StepKind.RECACHE in {kind for kind, _ in device.ran}
        assert max(rows for _, rows in device.ran) > 1
        for n, driver in enumerate(people):
            assert not driver.faults
            assert driver.digests() == alone(card, 10 * seed + n, 3 + n, len(driver.done))

    run(scene())


def test_frames_come_nine_then_twelve_at_a_time_and_leave_one_by_one(card: LoadedCard) -> None:
    async def scene() -> tuple[Engine, Fickle]:
        engine, _ = await started(lambda batch: 0.01, (card,), spec=EngineSpec(slots=1, share_cap=1.0))
        driver = Fickle(engine, "solo", FOX, at=99)
        assert isinstance(await driver.open(card.card.name, seed=5), api.Opened)
        await asyncio.sleep(3.5)
        await engine.close()
        return engine, driver

    _, driver = run(scene())
    counts = [sum(frame.chunk == chunk for _, frame in driver.frames) for chunk in range(4)]
    assert counts == [9, 12, 12, 12]
    assert [frame.frame for _, frame in driver.frames] == list(range(len(driver.frames)))
    steady = driver.intervals()[9:45]
    assert max(abs(interval * 16 - 1) for interval in steady) < 0.05
