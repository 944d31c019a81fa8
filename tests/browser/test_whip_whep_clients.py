"""WHIP sources and a WHEP player that nobody here wrote, in Chromium: npm's whip-whep and @eyevinn/whip-web-client."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from worldroom.clients.bench.server import serving
from worldroom.clients.python.room import join
from worldroom.engine.api import FirstFrames, FirstFramesSize, Supersede
from worldroom.rtc.access.spec import AccessSpec
from worldroom.tests.browser.conftest import Visitor
from worldroom.tests.browser.npm_site import as_module, site
from worldroom.tests.flow.rtc import conftest

PAGE = """<!doctype html><meta charset=utf-8><title>Other people's clients</title>
<script type=importmap>
  {"imports": {"events": "/events-module.js", "sdp-transform": "/sdp-transform-module.js"}}
</script>
<video id=picture autoplay muted playsinline></video>
<canvas id=camera width=320 height=192></canvas>
<script type=module>
  import { WHEPClient } from '/whip-whep/whep.js';
  import { WHIPClient } from '/whip-whep/whip.js';
  import { WHIPClient as Eyevinn } from '/@eyevinn/whip-web-client/dist/whip-client.modern.js';
  const paint = camera.getContext('2d');
  let at = 0;
  setInterval(() => { paint.fillStyle = `rgb(${at = (at + 8) % 256}, 40, 200)`; paint.fillRect(0, 0, 320, 192); }, 60);
  const sources = window.sources = { whip: new WHIPClient(), whep: new WHEPClient() };
  window.watch = async (url) => {
    const pc = new RTCPeerConnection();
    pc.addTransceiver('video', { direction: 'recvonly' });
    pc.ontrack = (event) => { picture.srcObject = event.streams[0] ?? new MediaStream([event.track]); };
    await sources.whep.view(pc, url);
  };
  window.publish = async (url, token) => {
    const pc = new RTCPeerConnection();
    for (const track of camera.captureStream(15).getTracks()) pc.addTransceiver(track, { direction: 'sendonly' });
    await sources.whip.publish(pc, url, token);
  };
  window.ingest = async (endpoint, authkey) => {
    window.eyevinn = new Eyevinn({ endpoint, opts: { authkey, noTrickleIce: true } });
    await eyevinn.ingest(camera.captureStream(15));
  };
  window.restart = () => sources.whep.restart();
  window.stop = (which) => sources[which].stop();
  document.body.dataset.ready = 'yes';
</script>"""

PAIR = """async () => {
  const stats = [...(await sources.whep.pc.getStats()).values()];
  const { selectedCandidatePairId: id } = stats.find((one) => one.type === 'transport');
  const remote = stats.find((one) => one.id === stats.find((pair) => pair.id === id)?.remoteCandidateId);
  return { ufrag: remote?.usernameFragment ?? '', port: remote?.port };
}"""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    grammar = ("lib/grammar.js", "lib/parser.js", "lib/writer.js", "lib/index.js")
    modules = {
        "/events-module.js": as_module("events", ("events.js",), ("EventEmitter",)),
        "/sdp-transform-module.js": as_module("sdp-transform", grammar, ("parse", "write")),
    }
    pages = {path: ("text/javascript", text) for path, text in modules.items()}
    with site({"/": ("text/html", PAGE), **pages}) as address:
        yield address


@pytest.fixture(scope="module")
def rooms(page: str) -> Iterator[str]:
    with serving("toy", "--option", "fps=12", "--slots", "3", "--allow-origin", page) as address:
        yield address


def test_a_whep_player_from_npm_plays_restarts_ice_and_ends(
    page: str, rooms: str, visitor: Callable[..., Visitor]
) -> None:
    driver = visitor().open(f"{rooms}/r/cinema").until_playing()
    other = visitor().open(page)
    other.until("document.body.dataset.ready === 'yes'")
    other.page.evaluate(f"watch('{rooms}/v1/rooms/cinema/whep')")
    other.until("picture.videoWidth > 0 && picture.currentTime > 0")
    driver.until("worldroom.world.people.length === 2")
    before = other.page.evaluate(PAIR)
    other.page.evaluate("restart()")
    other.until(f"({PAIR})().then((pair) => pair.ufrag && pair.ufrag !== '{before['ufrag']}')")
    at = other.number("picture.currentTime")
    other.until(f"picture.currentTime > {at} + 1")
    assert other.page.evaluate("sources.whep.pc.connectionState") == "connected"
    assert other.page.evaluate("sources.whep.pc.getTransceivers().length") == 1
    other.page.evaluate("stop('whep')")
    driver.until("worldroom.world.people.length === 1")


class Studio:
    """A server whose worlds take a first frame, and somebody who drives one, on a loop of their own."""

    def __init__(self, web_root: Path, origin: str) -> None:
        self._web_root, self._origin = web_root, origin
        self._over, self._ready = asyncio.Event(), threading.Event()
        self.base, self.token = "", ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    def __enter__(self) -> "Studio":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _serve(self) -> None:
        access = AccessSpec(origins=(self._origin,))
        async with (
            conftest.serving(self._web_root, access=access) as served,
            join(f"{served.base}/r/studio", loopback=True, decode=False) as room,
        ):
            self.base, self.token, self._engine = served.base, room.token or "", served.engine
            self._ready.set()
            await self._over.wait()

    def began(self) -> list[FirstFrames]:
        """What worlds began from."""
        return [each.first_frames for each in self._engine.asked(Supersede) if each.first_frames is not None]


@pytest.mark.parametrize("way", ["publish", "ingest"])
def test_a_whip_source_from_npm_is_where_a_world_begins(
    way: str, page: str, visitor: Callable[..., Visitor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = FirstFramesSize(width=64, height=48, frames=1)
    monkeypatch.setattr(conftest, "CARD", msgspec.structs.replace(conftest.CARD, first_frames=size))
    with Studio(tmp_path, page) as studio:
        other = visitor().open(page)
        other.until("document.body.dataset.ready === 'yes'")
        other.page.evaluate(f"{way}('{studio.base}/v1/rooms/studio/whip', '{studio.token}')")
        for _ in range(200):
            if studio.began():
                break
            other.page.wait_for_timeout(50)
        (frames,) = studio.began()
        assert (frames.width, frames.height, frames.frames) == (64, 48, 1)
        other.page.evaluate("window.eyevinn ? eyevinn.destroy() : stop('whip')")
