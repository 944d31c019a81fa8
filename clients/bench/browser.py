"""Motion-to-photon and frame intervals as a person gets them: headless Chromium on the real page, keys at random phase.

Starts a server of its own on a free loopback port. The page measures (`clients/web/sdk/latency.js`); this module
presses keys and reads the figures. Needs playwright (extra `dev`) and Debian's chromium.
"""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from ..python.latency import LatencySpread, spread
from .server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
    "--disable-features=WebRtcHideLocalIpsWithMdns",
)
PICTURE_TIMEOUT_MS = 20_000
SETTLE_MS = 1_500
KEYS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
WIDTH, HEIGHT = 1280, 800

# Counts what the video element is given, next to the page's own figures.
WATCH_FRAMES = """() => {
  const video = document.getElementById('picture');
  const seen = (globalThis.seenFrames = []);
  const next = () => video.requestVideoFrameCallback((_, frame) => {
    next();
    seen.push([performance.now(), frame.receiveTime ?? 0, frame.presentedFrames]);
  });
  next();
  worldroom.latency.samples.length = 0;
  worldroom.latency.window = 100000;
  globalThis.joinedBefore = worldroom.latency.joined;
}"""
FRAMES_SEEN = "seenFrames"
SAMPLES = "worldroom.latency.samples.map(({ ms, parts }) => [ms, ...parts])"
JOINED = "worldroom.latency.joined - joinedBefore"
FIRST_PICTURE = "document.getElementById('picture').classList.contains('playing') ? performance.now() : 0"


class BrowserMissing(RuntimeError):
    """Playwright or Chromium is not installed; the message says how to get it."""


class Parts(msgspec.Struct, frozen=True):
    """Where the time from key to picture went, in ms; the order of `PARTS` in the page's latency.js."""

    hold: float
    wait: float
    step: float
    decode: float
    encode: float
    pace: float
    network: float
    display: float


class BrowserReport(msgspec.Struct, frozen=True):
    """`interval_ms` between frames as they arrived, `shown_interval_ms` as they were shown (multiples of the display's
    period). `parts_ms`: where the time of a press went, means. `dropped`: frames decoded but never shown."""

    card: str
    session: str
    chromium: str
    seconds: float
    frames: int
    fps: float
    first_frame_ms: float
    interval_ms: LatencySpread
    shown_interval_ms: LatencySpread
    motion_to_photon_ms: LatencySpread
    parts_ms: Parts
    receipts: int
    dropped: int


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Headless Chromium that speaks WebRTC on loopback; raises `BrowserMissing`."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise BrowserMissing("playwright is not installed: make setup") from None
    path = shutil.which("chromium")
    if path is None:
        raise BrowserMissing("chromium is not on the PATH: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def run_browser(card: str, seconds: float, seed: int = 0) -> BrowserReport:
    """Serve `card`, drive it for `seconds` in Chromium, report; raises `BrowserMissing`."""
    with chromium() as browser, serving(card) as url:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{url}/r/measure")
        return measure(page, browser.version, seconds, random.Random(seed))


def measure(page: "Page", version: str, seconds: float, phases: random.Random) -> BrowserReport:
    """Press keys on a page that opens or shows a room, and read what it measured."""
    page.wait_for_function(FIRST_PICTURE, timeout=PICTURE_TIMEOUT_MS, polling="raf")
    first_frame_ms = float(page.evaluate("performance.getEntriesByName('picture')[0].startTime"))
    page.wait_for_timeout(SETTLE_MS)
    page.evaluate(WATCH_FRAMES)
    press_keys(page, seconds, phases)
    seen = [(float(shown), float(received), int(count)) for shown, received, count in page.evaluate(FRAMES_SEEN)]
    samples = [[float(value) for value in row] for row in page.evaluate(SAMPLES)]
    shown_s = (seen[-1][0] - seen[0][0]) / 1000 if len(seen) > 1 else 0.0
    presented = seen[-1][2] - seen[0][2] if len(seen) > 1 else 0
    return BrowserReport(
        card=str(page.evaluate("worldroom.world.welcome.card")),
        session=str(page.evaluate("worldroom.world.welcome.session")),
        chromium=version,
        seconds=round(shown_s, 2),
        frames=len(seen),
        fps=round(presented / shown_s, 2) if shown_s else 0.0,
        first_frame_ms=round(first_frame_ms, 1),
        interval_ms=spread([b[1] - a[1] for a, b in pairwise(seen) if b[2] == a[2] + 1]),
        shown_interval_ms=spread([b[0] - a[0] for a, b in pairwise(seen)]),
        motion_to_photon_ms=spread([row[0] for row in samples]),
        parts_ms=Parts(*(_mean([row[i + 1] for row in samples]) for i in range(len(Parts.__struct_fields__)))),
        receipts=int(page.evaluate(JOINED)),
        dropped=max(0, presented - len(seen) + 1),
    )


def press_keys(page: "Page", seconds: float, phases: random.Random) -> None:
    """Taps and holds of a random key at random phase to the frames, until the time is over."""
    left_ms = seconds * 1000
    while left_ms > 0:
        key, hold_ms, rest_ms = phases.choice(KEYS), phases.uniform(60, 260), phases.uniform(90, 310)
        page.keyboard.down(key)
        page.wait_for_timeout(hold_ms)
        page.keyboard.up(key)
        page.wait_for_timeout(rest_ms)
        left_ms -= hold_ms + rest_ms


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 2) if values else 0.0
