"""A real family on the engine: worlds with sinks and rebuilt caches make together what each makes alone.

Chunks are cancelled at random moments; frames come nine, then twelve at a time and leave one by one. The same gate for
rows that have a pass each, and for rows that share passes of the invariant form.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
import torch
from torch import nn
from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.kernels.invariant_matmul import invariant_linear
from worldroom.models.contract.conditions import Conditions, PromptShare
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.parity.session import ChunkInput, ParitySession
from worldroom.models.shared import invariant
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.parity.rollout import loaded, twin
from worldroom.models.wan.rows import Sharing
from worldroom.models.wan.runtime import WanRuntime
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started

torch.set_num_threads(1)
FOX, STORM = "a fox in snow", "a lighthouse in a storm"
CHUNKS = 7
PEOPLE = 4
QUICK = 0.02  # seconds a batch takes while everybody comes in: they must fit


def longlive(sharing: Sharing) -> LoadedCard:
    spec = twin(SPECS["longlive-1.3b"])
    plan = replace(spec.rollout, sigmas=spec.rollout.sigmas[:2])
    return loaded(replace(spec, plan=plan, vae=replace(spec.vae, width=4)), sharing)


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
    return [outcome.digest for outcome in ParitySession(card, 0, seed, inputs, card.runtime.encode_prompt).run()]


async def disturb(driver: Fickle, rng: random.Random) -> None:
    while len(driver.done) < CHUNKS:
        await asyncio.sleep(rng.uniform(0.05, 1.5))
        driver.supersede()


class Passes:
    """What the network itself is asked: kind of every pass ('denoise', or 'write' of entries) and its rows."""

    def __init__(self, card: LoadedCard) -> None:
        self.seen: Counter[tuple[str, int]] = Counter()
        assert isinstance(card.runtime, WanRuntime)
        card.runtime.networks.transformer.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, module: nn.Module, given: tuple[torch.Tensor, ...], named: Mapping[str, object]) -> None:
        self.seen["denoise" if named["keep"] is None else "write", len(given[0])] += 1

    def rows(self, kind: str) -> set[int]:
        return {rows for made, rows in self.seen if made == kind}


async def together(card: LoadedCard, seed: int, passes: Passes) -> list[Fickle]:
    """Everybody until they have their chunks; while the device is slow their steps wait for each other."""
    rng = random.Random(seed)

    def cost(batch: Batch) -> float:
        return rng.choice((0.05, 0.08, 0.1))

    spec = EngineSpec(slots=PEOPLE, max_rows=4, share_cap=1.0, seed=seed)
    engine, device = await started(lambda batch: QUICK, (card,), spec=spec)
    device.ran.clear()
    passes.seen.clear()  # those of the warm-up
    people = [Fickle(engine, f"s{n}", FOX, at=3 + n) for n in range(PEOPLE)]
    for n, driver in enumerate(people):
        assert isinstance(await driver.open(card.card.name, seed=10 * seed + n), api.Opened)
    device.cost = cost
    await asyncio.gather(*(disturb(driver, rng) for driver in people))
    for driver in people:
        engine.post(api.Close(driver.session))
    await asyncio.sleep(1)
    engine.check_integrity()
    await engine.close()
    assert sum(len(driver.cancelled) for driver in people) > 0
    assert StepKind.RECACHE in {kind for kind, _ in device.ran}
    assert max(rows for _, rows in device.ran) > 1
    return people


def check(card: LoadedCard, seed: int, people: list[Fickle]) -> None:
    for n, driver in enumerate(people):
        assert not driver.faults
        assert driver.digests() == alone(card, 10 * seed + n, 3 + n, len(driver.done))


@pytest.mark.parametrize("sharing", [Sharing.ALONE, Sharing.INVARIANT])
@pytest.mark.parametrize("seed", [1, 2])
def test_interleaved_worlds_make_what_each_makes_alone(sharing: Sharing, seed: int) -> None:
    """With the invariant form batches are passes; how many rows share one is the scheduler's to say."""
    card = longlive(sharing)
    passes = Passes(card)
    people = run(together(card, seed, passes))
    if sharing is Sharing.ALONE:
        assert passes.rows("denoise") == passes.rows("write") == {1}
    else:
        assert passes.rows("denoise") >= {2, 3} and max(passes.rows("write")) > 1
        shared = sum(rows * count for (kind, rows), count in passes.seen.items() if kind == "denoise" and rows > 1)
        assert shared > 20
    passes.seen.clear()
    check(card, seed, people)
    assert passes.rows("denoise") == passes.rows("write") == {1}, "alone is one row a pass"


def test_the_gate_would_notice_a_product_that_feels_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def feels(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, tile: int) -> torch.Tensor:
        return invariant_linear(x, weight, bias, tile) * (1 + 1e-6 * len(x))

    monkeypatch.setattr(invariant, "invariant_linear", feels)
    card = longlive(Sharing.INVARIANT)
    people = run(together(card, 1, Passes(card)))
    with pytest.raises(AssertionError):
        check(card, 1, people)


def test_frames_come_nine_then_twelve_at_a_time_and_leave_one_by_one() -> None:
    card = longlive(Sharing.ALONE)

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
