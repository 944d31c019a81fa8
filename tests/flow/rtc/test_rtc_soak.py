"""The short form of `make soak`: people come and go, WHEP players among them, and nothing of them stays."""

import pytest
from worldroom.clients.bench.server import served
from worldroom.clients.bench.soak import soak


@pytest.mark.slow
async def test_people_come_and_go_and_nothing_of_them_stays() -> None:
    with served("toy", "--slots", "2") as server:
        report = await soak(server.base, server.pid, sessions=2, seconds=30, seed=1)
    assert report.came >= 15 and report.players >= 2 and report.failed == 0
    assert report.threads.last <= report.threads.first + 1
    assert report.descriptors.last <= report.descriptors.first + 2
    assert report.tasks.last <= report.tasks.first + 2
    assert report.server.growth < 10, "a short time: heaps still fill"
