"""The short form of `make soak`: people come and go by every way in, and nothing of them stays."""

import pytest
from worldroom.clients.bench.server import served
from worldroom.clients.bench.soak import soak
from worldroom.clients.bench.visits import WayIn
from worldroom.tests.livekit_server import LiveKitServer

KEY, SECRET = "devkey", "s" * 40


@pytest.mark.slow
async def test_people_come_and_go_and_nothing_of_them_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDROOM_LIVEKIT_SECRET", SECRET)
    sfu = LiveKitServer(KEY, SECRET)
    await sfu.start()
    with served("toy", "--slots", "2", "--livekit-url", sfu.url, "--livekit-key", KEY) as server:
        report = await soak(server.base, server.pid, sessions=2, seconds=30, seed=1, livekit=True, warm_up=0)
    await sfu.stop()
    assert report.failed * 10 <= sum(report.came.values()), "a busy machine is too slow for one or the other"
    assert min(report.came.values()) >= 3 and report.came[WayIn.BROWSER] >= 10
    assert report.threads.last <= report.threads.first + 1
    assert report.descriptors.last <= report.descriptors.first + 2
    assert report.tasks.last <= report.tasks.first + 2
    assert report.server.growth < 10, "a short time: heaps still fill"
