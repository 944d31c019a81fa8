"""The engine on its real thread and the real clock: it runs, and leaves no thread behind."""

import asyncio
import threading
from functools import partial

from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.engine.core import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.tests.fake_engine import Person, until


def seen(driver: Person, count: int) -> bool:
    return len(driver.frames) >= count


async def test_frames_come_from_the_device_thread_and_threads_end_with_the_engine() -> None:
    for _ in range(3):
        engine = Engine((catalog.load("toy"),), SystemClock(), EngineSpec())
        await engine.start()
        driver = Person(engine, "a")
        assert isinstance(await driver.open(), api.Opened)
        await until(partial(seen, driver, 5), within=120)
        assert not driver.faults
        assert engine.capacity()[0].device == "cpu"
        await engine.close()
        assert engine.capacity()[0].pool_bytes_used == 0
    names = [thread.name for thread in threading.enumerate() if thread.name.startswith(("device", "encode"))]
    assert names == []


async def test_twenty_sessions_come_and_go_on_the_same_threads() -> None:
    engine = Engine((catalog.load("toy"),), SystemClock(), EngineSpec())
    await engine.start()
    counts = []
    for number in range(20):
        driver = Person(engine, f"s{number}")
        assert isinstance(await driver.open(), api.Opened)
        await until(partial(seen, driver, 1), within=120)
        engine.post(api.Close(driver.session))
        counts.append((threading.active_count(), len(asyncio.all_tasks())))
    assert max(threads for threads, _ in counts) - counts[2][0] <= 1
    assert max(tasks for _, tasks in counts) <= 8
    await engine.close()
