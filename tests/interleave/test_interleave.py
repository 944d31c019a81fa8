"""The interleave gate on the toy: sessions that share a device make exactly what each makes alone.

Chunks are cancelled at random moments, worlds restarted, sessions closed and opened in used slots. The toy's latents
depend on every commit, on the order of the cache and on the noise, so any leak changes every later digest.
"""

import asyncio
import random
from collections.abc import Callable

import pytest
from worldroom.engine import api
from worldroom.engine.core import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker import Batch
from worldroom.models.toy import golden
from worldroom.tests.fake_engine import Person, started
from worldroom.tests.virtual_time import run

PROMPTS = ("a calm blue sea", "a red desert", "a green nebula")
STEPS = (1, 2, 4)
CHUNKS = 24


def steering(seed: int) -> Callable[[int], tuple[float, ...]]:
    return lambda chunk: tuple(float(random.Random(seed * 1000 + chunk).getrandbits(4) >> i & 1) for i in range(4))


def uneven(seed: int) -> Callable[[Batch], float]:
    rng = random.Random(seed)
    return lambda batch: rng.choice((0.0002, 0.001, 0.003))


async def disturb(engine: Engine, driver: Person, rng: random.Random) -> None:
    """Supersede at moments that have nothing to do with chunks or steps."""
    while len(driver.done) < CHUNKS:
        await asyncio.sleep(rng.uniform(0.001, 0.15))
        match rng.randrange(4):
            case 0:
                engine.post(api.Pause(driver.session))
                await asyncio.sleep(rng.uniform(0.0, 0.02))
                engine.post(api.Resume(driver.session))
            case 1:
                engine.post(api.RequestKey(driver.session, joined=True))
            case _:
                driver.supersede()


def expected(driver: Person, seed: int, steps: int) -> list[str]:
    inputs = [
        golden.GoldenInput(driver.controls(chunk), ((driver.prompt, 1.0),), chunk) for chunk in range(len(driver.done))
    ]
    return [chunk.digest for chunk in golden.run(seed, 0, steps, 24, 1, inputs)]


@pytest.mark.parametrize("seed", range(50))
def test_interleaved_sessions_make_what_each_makes_alone(seed: int) -> None:
    async def scene() -> None:
        rng = random.Random(seed)
        spec = EngineSpec(slots=3, max_rows=rng.choice((1, 2, 4)), share_cap=1.0, seed=seed)
        engine, device = await started(uneven(seed), spec=spec)
        device.ran.clear()
        guest = Person(engine, "guest")
        await guest.open(seed=5)
        await asyncio.sleep(rng.uniform(0.1, 0.3))
        engine.post(api.Close("guest"))  # leaves a used slot behind, perhaps in the middle of a step
        people = [Person(engine, f"s{n}", PROMPTS[n], steering(seed * 10 + n)) for n in range(3)]
        for n, driver in enumerate(people):
            assert isinstance(await driver.open(seed=100 * seed + n, steps=STEPS[n]), api.Opened)
            await asyncio.sleep(rng.uniform(0.0, 0.03))
        await asyncio.gather(*(disturb(engine, driver, rng) for driver in people))
        for n, driver in enumerate(people):
            assert not driver.faults
            assert driver.digests() == expected(driver, 100 * seed + n, STEPS[n])
            engine.post(api.Close(driver.session))
        await asyncio.sleep(1)
        assert engine.capacity()[0].pool_bytes_used == 0
        engine.check_integrity()
        await engine.close()

    run(scene())


def test_the_gate_would_notice_a_cache_that_keeps_what_was_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback that commits instead must be seen, or the gate above proves nothing."""
    from worldroom.engine import pools

    monkeypatch.setattr(pools.SlotWrites, "rollback", pools.SlotWrites.commit)
    with pytest.raises(AssertionError):
        for seed in range(10):
            test_interleaved_sessions_make_what_each_makes_alone(seed)
