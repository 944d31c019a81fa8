"""The interleave gate on the drive, with random weights: it asks whose numbers meet, not whether they are pretty."""

import asyncio
import random

import numpy as np
import pytest
import torch
from worldroom.engine import api
from worldroom.engine.core import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.recipe import Precision, RuntimeChoice
from worldroom.models.drive.autoencoder import DriveAutoencoder
from worldroom.models.drive.card import RECIPE, drive_card
from worldroom.models.drive.look import ONE_HOT
from worldroom.models.drive.loop import DriveLoop
from worldroom.models.drive.openings import SHAPE, Openings
from worldroom.models.drive.runtime import SHAPE as NETWORK
from worldroom.models.drive.runtime import DriveRuntime
from worldroom.models.drive.transformer import DriveTransformer
from worldroom.tests.fake_engine import Person, started, steady, until
from worldroom.tests.virtual_time import run

CHUNKS = 14  # longer than the window, so entries fall out of the ring
STEPS = (1, 2, 2)


def drive() -> LoadedCard:
    torch.manual_seed(11)
    transformer, autoencoder = DriveTransformer(NETWORK), DriveAutoencoder()
    with torch.no_grad():
        for parameter in transformer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.03)
    nets = (transformer.eval().requires_grad_(False), autoencoder.eval().requires_grad_(False))
    runtime = DriveRuntime(*nets, lambda text: ONE_HOT[len(text)], Precision.FP32)
    openings = Openings(np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32))
    choice = RuntimeChoice(RECIPE.sampler, 2, Precision.FP32)
    return LoadedCard(drive_card(Precision.FP32), choice, "random", DriveLoop(openings), runtime)


def driver(engine: Engine, name: str, n: int) -> Person:
    return Person(engine, name, "snow " * (n + 1), lambda chunk: tuple(float((chunk >> i) + n & 1) for i in range(4)))


async def disturb(person: Person, rng: random.Random) -> None:
    while len(person.done) < CHUNKS:
        await asyncio.sleep(rng.uniform(0.001, 0.12))
        person.supersede()


@pytest.mark.parametrize("seed", range(2))
def test_interleaved_drives_make_what_each_makes_alone(seed: int) -> None:
    async def scene() -> None:
        rng = random.Random(seed)
        spec = EngineSpec(slots=3, max_rows=2, share_cap=1.0)
        engine, _ = await started(steady(0.003), (drive(),), spec)
        alone = []
        for n, steps in enumerate(STEPS):
            person = driver(engine, f"alone{n}", n)
            assert isinstance(await person.open("drive", seed=n, steps=steps), api.Opened)
            await until(lambda person=person: len(person.done) >= CHUNKS)
            engine.post(api.Close(person.session))
            alone.append(person.digests()[:CHUNKS])
        people = [driver(engine, f"together{n}", n) for n in range(3)]
        for n in rng.sample(range(3), 3):
            assert isinstance(await people[n].open("drive", seed=n, steps=STEPS[n]), api.Opened)
            await asyncio.sleep(rng.uniform(0.0, 0.02))
        await asyncio.gather(*(disturb(person, rng) for person in people))
        assert sum(len(person.cancelled) for person in people) > 3
        assert not any(person.faults for person in people)
        assert [person.digests()[:CHUNKS] for person in people] == alone
        assert len({digest for digests in alone for digest in digests}) == 3 * CHUNKS
        await engine.close()
        engine.check_integrity()

    torch.set_num_threads(1)
    run(scene())
