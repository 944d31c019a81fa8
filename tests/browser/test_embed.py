"""Rooms that ask for a token, and pages of other origins that show them."""

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from worldroom.clients.bench.server import serving
from worldroom.rtc.access.keys import ApiKey
from worldroom.rtc.access.tokens import mint
from worldroom.sessions.messages import Grant
from worldroom.sessions.rooms.rights import Rights
from worldroom.tests.browser.conftest import Visitor

KEY = ApiKey("studio", "s" * 40)
PAGE = """<!doctype html><meta charset=utf-8><title>A page of somebody else's</title>
<video id=picture autoplay muted playsinline></video>
<script type=module>
  const to = new URLSearchParams(location.search).get('to');
  try {
    const { connect } = await import(new URL('/web/sdk/index.js', to).href);
    const room = connect(to);
    window.room = room;
    room.on('track', (track) => { picture.srcObject = new MediaStream([track]); });
    room.on('link', (link) => { document.body.dataset.phase = link.phase; });
  } catch (error) { document.body.dataset.failed = String(error); }
</script>"""


PLAYER = """<!doctype html><meta charset=utf-8><title>Another page of somebody else's</title>
<script type=module>
  const asked = new URLSearchParams(location.search);
  await import(new URL('/web/sdk/player.js', asked.get('to')).href);
  const player = document.createElement('worldroom-player');
  player.setAttribute('room', asked.get('to'));
  player.setAttribute('token', asked.get('token'));
  player.addEventListener('link', ({ detail }) => { document.body.dataset.phase = detail.phase; });
  player.addEventListener('frame', ({ detail }) => {
    if (detail.receipt.applied.some((level) => level > 0)) document.body.dataset.steered = 'yes';
  });
  document.body.append(player);
  window.player = player;
</script>"""


class Site(http.server.BaseHTTPRequestHandler):
    """Two pages: one with the SDK, one with the web component."""

    def do_GET(self) -> None:
        body = (PLAYER if self.path.startswith("/player") else PAGE).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@dataclass(frozen=True)
class Scene:
    """A server with a key, a site that it lets embed, and one that it does not."""

    server: str
    friend: str
    stranger: str

    def room(self, name: str, grant: Grant | None = Grant.DRIVER) -> str:
        address = f"{self.server}/r/{name}"
        return address if grant is None else f"{address}#token={mint(KEY, name, Rights(grant), time.time())}"


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    sites = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) for _ in range(2)]
    for site in sites:
        threading.Thread(target=site.serve_forever, daemon=True).start()
    friend, stranger = (f"http://127.0.0.1:{site.server_address[1]}" for site in sites)
    key = f"{KEY.name}:{KEY.secret}"
    with serving("toy", "--option", "fps=12", "--slots", "4", "--api-key", key, "--allow-origin", friend) as address:
        yield Scene(address, friend, stranger)
    for site in sites:
        site.shutdown()


def test_the_page_plays_with_the_token_of_its_address_and_without_one_says_why_not(
    scene: Scene, visitor: Callable[..., Visitor]
) -> None:
    driver = visitor().open(scene.room("cup")).until_playing()
    assert driver.world("drives") is True
    watcher = visitor().open(scene.room("cup", Grant.SPECTATOR)).until_playing()
    assert watcher.world("drives") is False
    driver.page.reload()
    driver.until_playing()
    assert driver.world("drives") is True
    nobody = visitor().open(scene.room("cup", None))
    nobody.until("document.body.dataset.phase === 'refused'")


def test_a_page_of_an_origin_that_is_allowed_plays_through_the_sdk(
    scene: Scene, visitor: Callable[..., Visitor]
) -> None:
    embedded = visitor()
    embedded.page.goto(f"{scene.friend}/?to={scene.room('embed').replace('#', '%23')}")
    embedded.until("document.body.dataset.phase === 'live' && picture.videoWidth > 0")
    assert embedded.page.evaluate("room.world.drives") is True


def test_the_web_component_plays_in_a_page_of_an_allowed_origin_and_takes_keys_while_it_has_the_focus(
    scene: Scene, visitor: Callable[..., Visitor]
) -> None:
    room, _, token = scene.room("player").partition("#token=")
    embedded = visitor()
    embedded.page.goto(f"{scene.friend}/player?to={room}&token={token}")
    embedded.until("document.body.dataset.phase === 'live' && player.video.videoWidth > 0")
    key = embedded.page.evaluate("player.room.world.welcome.controls[0].keys[0]")
    embedded.page.keyboard.down(key)
    assert embedded.page.evaluate("player.room.hold.held.size") == 0, "the page has the focus"
    embedded.page.keyboard.up(key)
    embedded.page.locator("worldroom-player").focus()
    embedded.page.keyboard.down(key)
    embedded.until("document.body.dataset.steered === 'yes'")
    embedded.page.evaluate("player.blur()")
    assert embedded.page.evaluate("player.room.hold.held.size") == 0
    embedded.page.evaluate("player.remove()")
    assert embedded.page.evaluate("player.room === null && player.video.srcObject === null")


def test_a_page_of_another_origin_gets_nothing(scene: Scene, visitor: Callable[..., Visitor]) -> None:
    stranger = visitor()
    stranger.page.goto(f"{scene.stranger}/?to={scene.room('embed').replace('#', '%23')}")
    stranger.until("document.body.dataset.failed !== undefined")
    assert stranger.page.evaluate("window.room") is None
