"""Chromium behind a narrow link: it says when packets arrive, and the stream's rate follows without a key frame."""

from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Route
from worldroom.clients.bench.network import PathSpec
from worldroom.clients.bench.server import serving
from worldroom.tests.browser.conftest import Visitor
from worldroom.tests.shaped_relay import Relay

pytestmark = pytest.mark.browser

WIDE, NARROW = PathSpec(delay_ms=10), PathSpec(delay_ms=10, kbps=600)
INBOUND = "worldroom.room.peer.pc.getStats().then((all) => [...all.values()].find((one) => one.type === 'inbound-rtp'))"
PATIENCE = 60


@pytest.fixture
def driven() -> Iterator[str]:
    with serving("drive", "--slots", "1") as address:
        yield address


class Stream:
    """What the server says of its one stream, and Chromium of what it got."""

    def __init__(self, address: str, viewer: Visitor) -> None:
        self._address, self._viewer = address, viewer

    @property
    def kbps(self) -> float:
        return self._figure("worldroom_bitrate_target_bits_per_second") / 1000

    @property
    def found_overfull(self) -> float:
        return self._figure("worldroom_edge_overfull_total")

    @property
    def keys(self) -> float:
        return self._viewer.number(f"{INBOUND}.then((one) => one.keyFramesDecoded)")

    def until(self, true: Callable[[], bool], seen: Callable[[], None] = lambda: None) -> None:
        for _ in range(PATIENCE * 4):
            seen()
            if true():
                return
            self._viewer.page.wait_for_timeout(250)
        raise AssertionError(f"never true: target {self.kbps} kbit/s, found overfull {self.found_overfull} times")

    def _figure(self, name: str) -> float:
        text = httpx.get(f"{self._address}/metrics", trust_env=False).text
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def test_a_narrow_link_lowers_the_rate_and_a_wide_one_raises_it(driven: str, visitor: Callable[..., Visitor]) -> None:
    alice, answers, rates = visitor(), list[str](), set[float]()
    with Relay(WIDE, WIDE) as relay:

        def through_relay(route: Route) -> None:
            asked = route.request.post_data_json
            reply = route.fetch(post_data=asked | {"sdp": relay.without_candidates(asked["sdp"])})
            told = reply.json()
            answers.append(told["sdp"])
            route.fulfill(response=reply, json=told | {"sdp": relay.in_front(told["sdp"])})

        alice.page.route("**/offer", through_relay)
        alice.open(f"{driven}/r/narrow").until_playing()
        assert "transport-cc" in answers[0] and "transport-wide-cc-extensions-01" in answers[0]
        stream = Stream(driven, alice)
        alice.until("worldroom.world.onScreen.chunk > 40")
        keys = stream.keys
        relay.narrow(NARROW)
        stream.until(lambda: stream.found_overfull > 0 and stream.kbps < 600)
        relay.narrow(WIDE)
        stream.until(lambda: stream.kbps > 1000, lambda: rates.add(stream.kbps))
        assert len(rates) >= 4 and stream.keys - keys < len(rates), "the rate moved more often than key frames came"
        assert alice.world("onScreen.chunk") and alice.complaints == []
