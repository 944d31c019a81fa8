"""Writes docs/screens: the page as people meet it, in every size and state worth a look. For people, not for asserting.

python -m worldroom.tests.browser.screens docs/screens [chromium|firefox]
"""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page
from worldroom.clients.bench.browser import chromium
from worldroom.clients.bench.server import serving
from worldroom.tests.browser import test_access as states
from worldroom.tests.browser.conftest import Visitor, pretend_controls, watched
from worldroom.tests.browser.test_layout import CARDS, SIZES

SETTLE_MS = 900
COLOURS = 256
SHOTS: tuple[tuple[str, Callable[[Visitor, str], None], str, dict[str, object]], ...] = (
    ("lobby", states.lobby, "desktop", {}),
    ("lobby-light", states.lobby, "desktop", {"color_scheme": "light"}),
    ("lobby-portrait", states.lobby, "portrait", {}),
    ("wrong-address", states.wrong_address, "desktop", {}),
    ("desktop", states.steering, "desktop", {}),
    ("desktop-light", states.steering, "desktop", {"color_scheme": "light"}),
    ("figures", states.figures, "desktop", {}),
    ("help", states.helped, "desktop", {}),
    ("people", states.people, "desktop", {}),
    ("ideas", states.ideas, "desktop", {}),
    ("mixing", states.mixing, "desktop", {}),
    ("mixing-portrait", states.mixing, "portrait", {"has_touch": True, "color_scheme": "light"}),
    ("sharing", states.sharing, "desktop", {"color_scheme": "light"}),
    ("lost", states.lost, "desktop", {}),
    ("line", states.line, "desktop", {}),
    ("spectator", states.spectator, "desktop", {}),
    ("portrait", states.steering, "portrait", {"has_touch": True}),
    ("portrait-light", states.live, "portrait", {"has_touch": True, "color_scheme": "light"}),
    ("landscape", states.steering, "landscape", {"has_touch": True}),
    ("landscape-full-screen", states.theatre, "landscape", {"has_touch": True}),
    ("full-screen-light", states.theatre, "desktop", {"color_scheme": "light"}),
    ("zoom-200", states.figures, "200 %", {}),
    ("zoom-400", states.live, "400 %", {}),
    ("forced-colours", states.steering, "desktop", {"forced_colors": "active"}),
    ("forced-colours-portrait", states.steering, "portrait", {"forced_colors": "active", "has_touch": True}),
)


def save(page: Page, path: Path, whole: bool) -> None:
    """A PNG of few colours: a look at a page needs no more, and a repository less."""
    shot = Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")
    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def shoot(browser: Browser, base: str, folder: Path) -> None:
    for name, state, size, options in SHOTS:
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, **({"color_scheme": "dark"} | options)
        )  # type: ignore[arg-type]
        visitor = watched(context.new_page())
        state(visitor, f"{base}/r/{name}")
        visitor.page.wait_for_timeout(SETTLE_MS)
        save(visitor.page, folder / f"{name}.png", size == "400 %")
        context.close()
    for count, size in ((9, "desktop"), (16, "portrait"), (16, "landscape")):
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, has_touch=size != "desktop", color_scheme="dark"
        )
        visitor = watched(context.new_page())
        visitor.page.add_init_script(pretend_controls(CARDS[count]))
        states.live(visitor, f"{base}/r/controls-{count}-{size}")
        visitor.page.wait_for_timeout(SETTLE_MS)
        save(visitor.page, folder / f"controls-{count}-{size}.png", False)
        context.close()


def main(folder: Path, which: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if which == "firefox":
        environment = os.environ | {"WORLDROOM_SCREENS": str(folder.resolve())}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "tests/browser/test_firefox.py"], env=environment, check=True
        )
        for path in folder.glob("firefox-*.png"):
            Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        return
    with chromium() as browser, serving("drive", "--lease", "1") as base:
        shoot(browser, base, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "chromium")
