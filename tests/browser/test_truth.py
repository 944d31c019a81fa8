"""The page says what it knows and no more: autoplay, storage, lost lines, worlds that are new."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from worldroom.clients.bench.server import serving
from worldroom.tests.real_server import PATIENCE_S, served

from .conftest import Visitor
from .test_restart import listens

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
# A browser that starts pictures only after a person asked for it.
REFUSES = """
globalThis.asked = false;
for (const kind of ['pointerdown', 'keydown']) addEventListener(kind, () => { asked = true; }, true);
const play = HTMLMediaElement.prototype.play;
HTMLMediaElement.prototype.play = function () {
  if (asked) return play.call(this);
  this.pause();
  return Promise.reject(new DOMException('not yet', 'NotAllowedError'));
};
Object.defineProperty(HTMLMediaElement.prototype, 'autoplay', { get: () => false, set: () => {} });
addEventListener('DOMContentLoaded', () => document.getElementById('picture').removeAttribute('autoplay'));
"""
PICTURE_MEAN = """() => {
  const still = document.getElementById('still');
  const data = still.getContext('2d').getImageData(0, 0, still.width, still.height).data;
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) sum += data[i] + data[i + 1] + data[i + 2];
  return [still.width, sum / data.length];
}"""
STORAGE = {
    "local storage throws": "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });",
    "session storage throws": "Object.defineProperty(window, 'sessionStorage', { get() { throw new Error('no'); } });",
    "storage is full": "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };",
    "storage is null": "for (const s of ['localStorage', 'sessionStorage'])"
    " Object.defineProperty(window, s, { value: null });",
    "no channel between tabs": "globalThis.BroadcastChannel = class { constructor() { throw new Error('no'); } };",
}


@pytest.mark.parametrize("start", ["click", "tap", "Enter", "button"])
def test_case_47_a_picture_that_the_browser_does_not_start_says_so_and_one_act_starts_it(
    visitor: MakeVisitor, room: str, start: str
) -> None:
    alice = visitor(has_touch=start == "tap")
    alice.page.add_init_script(REFUSES)
    alice.open(room)
    alice.until("document.getElementById('notice-title').textContent === 'Your browser waits for you'")
    alice.page.wait_for_timeout(4000)
    assert alice.page.locator("#notice").is_visible(), "it lasts"
    assert alice.text("#state-text") != "Live"
    match start:
        case "click":
            alice.page.mouse.click(400, 300)
        case "tap":
            alice.page.touchscreen.tap(400, 300)
        case "Enter":
            alice.page.keyboard.press("Enter")
        case "button":
            alice.page.click("#notice-act")
    alice.page.wait_for_function("document.body.dataset.shows === 'frames'", timeout=3000)
    assert alice.page.locator("#notice").is_hidden()
    assert alice.text("#state-text") == "Live"


def test_case_47_a_picture_that_was_stopped_in_the_background_plays_again_when_it_is_seen(
    visitor: MakeVisitor, room: str
) -> None:
    alice = visitor().open(room).until_playing()
    alice.page.evaluate("document.getElementById('picture').pause()")
    alice.until("document.getElementById('state-text').textContent === 'No picture'")
    alice.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    alice.until("document.getElementById('state-text').textContent === 'Live'")


@pytest.mark.parametrize("form", list(STORAGE))
def test_case_49_it_plays_where_storage_is_blocked_or_full(visitor: MakeVisitor, room: str, form: str) -> None:
    alice = visitor()
    alice.page.add_init_script(STORAGE[form])
    alice.open(room).until_playing()
    alice.page.keyboard.down("ArrowRight")
    alice.until("document.querySelector('.cap[data-control=right]').classList.contains('applied')")
    assert alice.complaints == []
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.until("document.body.dataset.phase === 'lost'")
    alice.until_playing()
    assert alice.world("welcome.resumed") is True


def test_case_60_the_last_picture_stays_through_five_failed_attempts(visitor: MakeVisitor, room: str) -> None:
    alice = visitor().open(room).until_playing()
    alice.page.keyboard.down("ArrowLeft")
    alice.until("document.querySelector('.cap[data-control=left]').classList.contains('applied')")
    alice.page.context.set_offline(True)
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.until("document.body.dataset.phase === 'lost'")
    width, mean = alice.page.evaluate(PICTURE_MEAN)
    assert width == 640 and mean > 5
    assert alice.page.locator(".cap.applied, .cap.pressed").count() == 0
    alice.until("worldroom.room.link.failures >= 5")
    assert alice.page.evaluate(PICTURE_MEAN) == [width, mean]
    assert alice.page.evaluate("getComputedStyle(document.getElementById('still')).visibility") == "visible"
    alice.page.context.set_offline(False)
    alice.until_playing()


def test_case_61_after_the_server_was_killed_the_page_says_that_the_world_is_new_and_the_driver_drives(
    visitor: MakeVisitor, tmp_path: Path
) -> None:
    with served(tmp_path) as (process, base):
        listens(process, base)
        ada = visitor().open(f"{base}/r/again?name=Ada").until_playing()
        bob = visitor().open(f"{base}/r/again?name=Bob").until_playing()
        session = ada.world("welcome.session")
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
        ada.until("document.body.dataset.phase === 'lost'")
        assert "kept" not in str(ada.text("#notice-text"))
    port = int(base.rpartition(":")[2])
    with served(tmp_path, port) as (again, _):
        bob.until_playing()
        ada.until_playing()
        if ada.world("welcome.session") != session:
            assert ada.text("#toast-text") == "This is a new world: the one before has ended"
        assert (ada.world("welcome.role"), bob.world("welcome.role")) == ("driver", "spectator")
        again.send_signal(signal.SIGTERM)
        again.wait(PATIENCE_S)


def test_it_plays_on_plain_http_where_browsers_give_pages_less(visitor: MakeVisitor, room: str) -> None:
    """As in a LAN: no pads, no clipboard, no keyboard map, no full screen by script."""
    alice = visitor()
    alice.page.add_init_script(
        "for (const name of ['clipboard', 'keyboard', 'getGamepads'])"
        " Object.defineProperty(navigator, name, { value: undefined });"
    )
    alice.open(room.rpartition("/r/")[0])
    alice.until("document.querySelectorAll('.world').length > 0")
    alice.open(room).until_playing()
    alice.page.evaluate("dispatchEvent(new Event('gamepadconnected'))")
    alice.page.keyboard.down("ArrowLeft")
    alice.until("document.querySelector('.cap[data-control=left]').classList.contains('applied')")
    assert alice.complaints == []


def test_it_plays_in_a_frame_of_another_page(visitor: MakeVisitor, room: str) -> None:
    alice = visitor()
    alice.open(room.rpartition("/r/")[0])
    alice.page.set_content(
        f"<iframe src='{room}' sandbox='allow-scripts allow-same-origin' width=900 height=600></iframe>"
    )
    frame = alice.page.frame_locator("iframe")
    frame.locator("body[data-shows=frames]").wait_for(timeout=30_000)
    assert frame.locator("#state-text").inner_text() == "Live"


def test_a_first_look_at_a_clip_is_called_one(visitor: MakeVisitor) -> None:
    with serving("toy-clip", "--option", "step_seconds=0.02") as address:
        alice = visitor().open(f"{address}/r/clip").until_playing()
        alice.until("!document.getElementById('early').hidden")
        assert alice.text("#early") == "A first look: these pictures are still being made"
        alice.until("document.getElementById('early').hidden")
        assert alice.complaints == []
