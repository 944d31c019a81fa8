"""The page in a real Chromium against a real server with the toy world: seeing, steering, prompting, pausing.

Most tests go on with one page and one world, as a person would; none depends on what another left behind.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import worldroom.clients.web
from playwright.sync_api import Browser

from .conftest import Visitor, watched

pytestmark = pytest.mark.browser

BLEND_MS = 1500
FRAMES_DECODED = """(async () => {
  for (const [, stat] of await worldroom.room.stats()) if (stat.type === 'inbound-rtp') return stat.framesDecoded;
})()"""
# The mean colour of the picture's middle, where the toy world has its sea.
COLOUR = """(() => {
  const video = document.getElementById('picture');
  const canvas = new OffscreenCanvas(8, 8);
  const brush = canvas.getContext('2d');
  brush.drawImage(video, 0, video.videoHeight / 2, video.videoWidth, video.videoHeight / 2, 0, 0, 8, 8);
  const data = brush.getImageData(0, 0, 8, 8).data;
  const sums = [0, 0, 0];
  data.forEach((value, i) => { if (i % 4 < 3) sums[i % 4] += value / 64; });
  return sums;
})()"""
NOTE_FRAMES = """() => {
  globalThis.frames = [];
  const { latency } = worldroom;
  for (const name of ['receipt', 'shown']) {
    const original = latency[name].bind(latency);
    latency[name] = (...args) => {
      const joined = original(...args);
      if (joined) frames.push([joined.shown_ms, joined.receipt.epoch, joined.receipt.chunk]);
      return joined;
    };
  }
}"""
NOTE_LEFT = """() => {
  globalThis.left = 0;
  const original = worldroom.latency.receipt.bind(worldroom.latency);
  worldroom.latency.receipt = (receipt) => {
    globalThis.left = Math.max(left, receipt.applied[0]);
    return original(receipt);
  };
}"""
BARE_STATS = """() => {
  worldroom.hud.stats(new Map());
  worldroom.hud.stats(new Map([['a', { type: 'inbound-rtp' }], ['b', null], ['c', {}]]));
  return ['fps', 'bitrate', 'buffer', 'rtt'].map((id) => document.getElementById(id).textContent);
}"""

# What breaks into a second line, or is wider than what it lies in, when the figures are these.
SLOW_FIGURES = """(figures) => {
  ['m2p', 'm2p-p95', 'fps'].forEach((id, i) => { document.getElementById(id).textContent = figures[i]; });
  const head = document.querySelector('.hud-head');
  const shown = [...head.children].filter((part) => part.offsetParent !== null);
  const broken = shown.filter((part) => part.offsetHeight > 1.8 * parseFloat(getComputedStyle(part).fontSize));
  return [...broken, ...(head.scrollWidth > head.clientWidth ? [head] : [])].map((part) => part.className);
}"""


@pytest.fixture(scope="module")
def alice(browser: Browser, server: str) -> Iterator[Visitor]:
    """The driver of one world."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield watched(context.new_page()).open(f"{server}/r/alice").until_playing()
    context.close()


def applied(control: str) -> str:
    return f"document.querySelector('.cap[data-control={control}]').classList.contains('applied')"


def test_a_world_plays_without_a_complaint(alice: Visitor) -> None:
    assert alice.number(FRAMES_DECODED) > 0
    assert alice.number("document.getElementById('picture').videoWidth") == 640
    assert alice.page.title() == "Toy: a ship of small integers · Worldroom"
    assert alice.text("#state-text") == "Live"
    assert alice.text("#people-text") == "You drive"
    assert alice.page.locator("#notice").is_hidden()
    assert alice.complaints == []


def test_a_key_is_applied_by_the_world_and_its_latency_appears(alice: Visitor) -> None:
    alice.page.keyboard.down("ArrowRight")
    alice.until(applied("right"))
    assert not alice.page.evaluate(applied("left"))
    alice.page.keyboard.up("ArrowRight")
    alice.until("!" + applied("right"))
    alice.until("worldroom.latency.samples.length > 0")
    parts = alice.page.evaluate("worldroom.latency.samples[0].parts")
    total = alice.number("worldroom.latency.samples[0].ms")
    assert len(parts) == 8
    assert min(parts) >= 0
    assert total > 0


def test_a_tap_shorter_than_a_frame_is_applied(alice: Visitor) -> None:
    alice.page.evaluate(NOTE_LEFT)
    alice.page.keyboard.press("ArrowLeft", delay=1)
    alice.until("left === 1")


def test_typing_a_prompt_steers_nothing_and_changes_the_picture(alice: Visitor) -> None:
    seq = alice.number("worldroom.held.seq")
    colours = []
    for prompt in ("a calm blue sea", "a red desert"):
        version = alice.number("worldroom.world.onScreen.prompt_version")
        alice.page.click("#prompt-text")
        alice.page.keyboard.type(prompt)
        alice.page.keyboard.press("Enter")
        alice.until("/^Applied at chunk [0-9]+$/.test(document.getElementById('now-label').textContent)")
        alice.until(f"worldroom.world.onScreen.prompt_version > {version}")
        alice.page.wait_for_timeout(BLEND_MS)
        colours.append(alice.page.evaluate(COLOUR))
        assert alice.page.locator(".chip[aria-pressed=true]").inner_text() == prompt
    assert sum(abs(sea - desert) for sea, desert in zip(*colours, strict=True)) > 30
    assert alice.number("worldroom.held.seq") == seq, "letters in the box are no keys of the world"


def test_a_suggestion_with_cut_is_one_click(alice: Visitor) -> None:
    alice.page.locator("#transition label", has_text="Cut").click()
    alice.page.locator(".chip", has_text="violet dusk").click()
    alice.until("document.getElementById('now-text').textContent === 'violet dusk'")
    alice.until("/^Applied/.test(document.getElementById('now-label').textContent)")


def test_pause_holds_the_picture_and_resume_goes_on(alice: Visitor) -> None:
    alice.page.click("#pause")
    alice.until("document.body.dataset.world === 'paused'")
    alice.page.wait_for_timeout(300)
    chunk = alice.number("worldroom.world.onScreen.chunk")
    alice.page.wait_for_timeout(400)
    assert alice.number("worldroom.world.onScreen.chunk") == chunk
    assert alice.text("#notice-title") == "Paused"
    alice.page.click("#notice-act")
    alice.until(f"worldroom.world.onScreen.chunk > {chunk} + 3")
    assert alice.text("#state-text") == "Live"


def test_after_a_reset_no_frame_of_the_old_world_is_shown(alice: Visitor) -> None:
    epoch = alice.number("worldroom.world.onScreen.epoch")
    alice.page.evaluate(NOTE_FRAMES)
    alice.until("frames.length > 5")
    alice.page.click("#reset")
    alice.page.click("#reset")
    alice.until(f"frames.filter(([, at]) => at === {epoch + 1}).length > 20")
    shown = sorted(tuple(frame) for frame in alice.page.evaluate("frames"))
    epochs = [epoch for _, epoch, _ in shown]
    assert epochs[0] == epoch
    assert epochs == sorted(epochs), "an old frame came after a new one"


def test_a_reset_can_be_undone(alice: Visitor) -> None:
    epoch = alice.number("worldroom.world.onScreen.epoch")
    alice.page.click("#reset")
    alice.page.click("#toast-act")
    alice.until("document.getElementById('toast-text').textContent === 'The world goes on as it was'")
    alice.page.wait_for_timeout(3000)
    assert alice.number("worldroom.world.onScreen.epoch") == epoch


def test_a_like_is_accepted(alice: Visitor) -> None:
    alice.page.click("#like")
    alice.until("document.getElementById('toast-text').textContent.startsWith('Noted')")
    assert alice.complaints == []


def test_figures_are_off_until_asked(alice: Visitor) -> None:
    assert alice.page.locator("#hud").is_hidden()
    alice.page.keyboard.press("h")
    alice.until("/^[0-9.]+ Mb/.test(document.getElementById('bitrate').textContent)")
    alice.page.keyboard.press("h")
    assert alice.page.locator("#hud").is_hidden()


def test_the_hud_survives_stats_without_fields(alice: Visitor) -> None:
    figures = alice.page.evaluate(BARE_STATS)
    assert figures == ["–", "–", "–", "–"]
    assert alice.complaints == []


def test_figures_of_a_slow_world_stay_on_one_line(alice: Visitor) -> None:
    for width, height in ((1280, 800), (390, 844)):
        alice.page.set_viewport_size({"width": width, "height": height})
        alice.page.evaluate("worldroom.hud.open(true, false)")
        for figures in (("173", "181", "20"), ("1234", "2345", "120")):
            assert alice.page.evaluate(SLOW_FIGURES, figures) == [], (width, figures)
    alice.page.set_viewport_size({"width": 1280, "height": 800})
    alice.page.evaluate("worldroom.hud.open(false, false)")


def test_the_video_element_plays_by_itself_on_phones() -> None:
    markup = (Path(worldroom.clients.web.__file__).parent / "room.html").read_text()
    video = re.search(r"<video[^>]*>", markup)
    assert video is not None
    for attribute in ("autoplay", "muted", "playsinline"):
        assert f" {attribute} " in video.group(0)


def test_a_finger_on_a_phone_steers(alice: Visitor) -> None:
    alice.page.set_viewport_size({"width": 390, "height": 844})
    box = alice.page.locator(".cap[data-control=left]").bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 44, "a finger needs 44 pixels"
    touch = alice.page.context.new_cdp_session(alice.page)
    point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    alice.until(applied("left"))
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    alice.until("!" + applied("left"))
    alice.page.set_viewport_size({"width": 1280, "height": 800})


def test_nothing_is_cut_off_at_any_size(alice: Visitor) -> None:
    for width, height in ((1440, 900), (1024, 768), (390, 844), (844, 390)):
        alice.page.set_viewport_size({"width": width, "height": height})
        assert alice.number("document.documentElement.scrollWidth") <= width
        picture = alice.page.locator("#frame").bounding_box()
        assert picture is not None
        assert picture["width"] * picture["height"] >= 0.26 * width * height
        assert abs(picture["width"] / picture["height"] - 640 / 384) < 0.02
    alice.page.set_viewport_size({"width": 1280, "height": 800})
