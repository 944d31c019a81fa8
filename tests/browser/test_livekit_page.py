"""A page joins a room through LiveKit: our SDK with LiveKit's own livekit-client, on a small LiveKit server of ours."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest
from worldroom.clients.bench.server import serving
from worldroom.rtc.access.keys import ApiKey
from worldroom.tests.browser.conftest import Visitor
from worldroom.tests.browser.npm_site import site
from worldroom.tests.livekit_server import LiveKitServer

KEY = ApiKey("devkey", "s" * 40)
PAGE = """<!doctype html><meta charset=utf-8><title>Through LiveKit</title>
<video id=picture autoplay muted playsinline></video>
<script type=module>
  import * as livekit from '/livekit-client/dist/livekit-client.esm.mjs';
  const to = new URLSearchParams(location.search).get('to');
  const { connect } = await import(new URL('/web/sdk/index.js', to).href);
  const { throughLiveKit } = await import(new URL('/web/sdk/livekit.js', to).href);
  const room = connect(to, { way: throughLiveKit(livekit) });
  window.room = room;
  room.on('track', (track) => { picture.srcObject = new MediaStream([track]); });
  room.on('link', (link) => { document.body.dataset.phase = link.phase; });
  room.on('frame', ({ receipt }) => {
    if (receipt.applied.some((level) => level > 0)) document.body.dataset.steered = 'yes';
  });
</script>"""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    with site({"/": ("text/html", PAGE)}) as address:
        yield address


@pytest.fixture(scope="module")
def sfu() -> Iterator[LiveKitServer]:
    """On a loop of its own: the browser's tests have none."""
    loop, server = asyncio.new_event_loop(), LiveKitServer(KEY.name, KEY.secret)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    yield server
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def test_a_page_sees_and_steers_a_world_through_livekit(
    page: str, sfu: LiveKitServer, visitor: Callable[..., Visitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLDROOM_LIVEKIT_SECRET", KEY.secret)
    livekit = ("--livekit-url", sfu.url, "--livekit-key", KEY.name)
    with serving("toy", "--option", "fps=12", "--slots", "2", "--allow-origin", page, *livekit) as address:
        guest = visitor()
        guest.page.goto(f"{page}/?to={address}/r/sfu")
        guest.until("document.body.dataset.phase === 'live' && picture.videoWidth > 0")
        assert guest.page.evaluate("room.world.drives") is True
        guest.page.evaluate("room.press(room.world.welcome.controls[0].keys[0])")
        guest.until("document.body.dataset.steered === 'yes'")
        assert guest.page.evaluate("room.pause().then((chunk) => chunk >= 0)")
        assert guest.page.evaluate("room.world.state") == "paused"
        assert sfu.rooms["sfu"].track is not None
