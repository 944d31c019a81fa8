"""The worker is killed under eight rooms: every world goes on, no chunk is lost or made twice; a spare takes over."""

import os
import signal

import psutil
from worldroom.cli.bench.recovery import measure
from worldroom.clock import SystemClock
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker.client import WorkerClient
from worldroom.engine.worker.process import WorkerProcess
from worldroom.engine.worker.spec import WorkerSpec
from worldroom.tests.fake_engine import until as within


async def test_eight_rooms_go_on_when_their_worker_is_killed() -> None:
    report = await measure("toy", sessions=8, kills=1, play=1.0, background=True, spare=False)
    assert report.sessions == 8
    assert report.next_frame_ms.count == 8
    assert report.chunks_journaled >= 8
    assert (report.chunks_lost, report.doubled, report.events_dropped, report.faults) == (0, 0, 0, 0)


async def spare_of(door: WorkerClient) -> WorkerProcess:
    await within(lambda: door.standby.process is not None, within=100)
    assert door.standby.process is not None
    return door.standby.process


async def test_a_spare_that_waits_takes_over_and_none_is_left_behind() -> None:
    serving = WorkerSpec(("toy",), None, EngineSpec(), spare_after=0.0)
    door = WorkerClient(serving, SystemClock())
    await door.start()
    spare = (await spare_of(door)).pid
    os.kill(door.pid, signal.SIGKILL)
    await within(lambda: door.ready and door.deaths == 1, within=100)
    assert door.pid == spare
    later = await spare_of(door)
    pids = [door.pid, later.pid]

    os.kill(pids[1], signal.SIGKILL)  # a spare that died is no spare
    await within(later.ended.is_set, within=100)
    os.kill(pids[0], signal.SIGKILL)
    await within(lambda: door.ready and door.deaths == 2, within=100)
    assert door.pid not in pids
    await door.close()
    assert not any(psutil.pid_exists(pid) for pid in (*pids, door.pid))
