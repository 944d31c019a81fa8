"""The engine on its real thread and the real clock: it runs, and leaves no thread behind."""

import asyncio
import threading
from functools import partial
from typing import Any

import pytest
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.tests.fake_engine import BlankEncoder, Person, until


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


async def test_a_session_closed_while_it_opens_leaves_nothing_behind() -> None:
    engine = Engine((catalog.load("toy"),), SystemClock(), EngineSpec())
    await engine.start()
    driver = Person(engine, "a")
    opening = asyncio.create_task(driver.open())
    await asyncio.sleep(0)
    engine.post(api.Close("a"))
    assert await opening == api.Refused("a", api.RefusalReason.CONFLICT, "closed while it was opening", 0, 0.0)
    await until(lambda: engine.capacity()[0].pool_bytes_used == 0, within=60)
    assert isinstance(await driver.open(), api.Opened)
    await until(partial(seen, driver, 2), within=120)
    await engine.close()


class Unopenable(BlankEncoder):
    """Opens for the warm-up and never again."""

    opened = 0

    def __init__(self, *args: Any) -> None:
        Unopenable.opened += 1
        if Unopenable.opened > 1:
            raise OSError("no encoder left")
        super().__init__(*args)


async def test_an_encoder_that_does_not_open_gives_the_slot_back() -> None:
    engine = Engine((catalog.load("toy"),), SystemClock(), EngineSpec(), encoder=Unopenable)
    await engine.start()
    with pytest.raises(OSError, match="no encoder left"):
        await Person(engine, "a").open()
    await until(lambda: engine.capacity()[0].pool_bytes_used == 0, within=60)
    assert engine.capacity()[0].sessions == 0
    await engine.close()
