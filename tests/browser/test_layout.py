"""The page at every size: phones upright and on their side, zoom, cards of 4 to 16 controls, full screen."""

from collections.abc import Callable

import pytest

from .conftest import Visitor, pretend_controls
from .geometry import picture, problems

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
# CSS pixels of a desktop window, phones, and a window of 1280 x 800 at 200 and 400 %.
SIZES = {
    "desktop": (1280, 800),
    "large": (1920, 1080),
    "tablet": (1024, 768),
    "portrait": (390, 844),
    "small portrait": (360, 640),
    "landscape": (844, 390),
    "small landscape": (667, 375),
    "200 %": (640, 400),
    "400 %": (320, 200),
}
FINGERS = ("portrait", "small portrait", "landscape", "small landscape")
WALK = [("forward", ["KeyW"]), ("back", ["KeyS"]), ("left", ["KeyA"]), ("right", ["KeyD"])]
LOOK = [(f"look {d}", [f"Arrow{d.title()}"]) for d in ("up", "down", "left", "right")]
MORE = [
    *[("jump", ["Space"]), ("sprint", ["ShiftLeft"]), ("use", ["KeyE"]), ("scroll up", ["PageUp"])],
    *[("scroll down", ["PageDown"]), ("inventory", ["KeyI"]), ("crouch", ["KeyC"]), ("throw", ["KeyQ"])],
]
CARDS = {
    4: WALK,
    5: WALK + MORE[:1],
    8: WALK + LOOK,
    9: WALK + MORE[:5],
    12: WALK + LOOK + MORE[:4],
    16: WALK + LOOK + MORE,
}


@pytest.mark.parametrize("count", list(CARDS))
def test_case_58_no_control_is_too_small_cut_off_or_over_the_picture(
    visitor: MakeVisitor, room: str, count: int
) -> None:
    alice = visitor()
    alice.page.add_init_script(pretend_controls(CARDS[count]))
    alice.open(room).until_playing()
    wrong = {}
    for name, (width, height) in SIZES.items():
        alice.page.set_viewport_size({"width": width, "height": height})
        alice.page.wait_for_timeout(80)
        if found := problems(alice, finger=name in FINGERS):
            wrong[name] = found
        shown_w, shown_h = picture(alice)
        least = 0.14 if count > 4 and name in (*FINGERS, "200 %") else 0.2
        if shown_w * shown_h < least * width * height:
            wrong.setdefault(name, []).append(f"the picture has {shown_w:.0f} x {shown_h:.0f} of {width} x {height}")
        if abs(shown_w / shown_h - 640 / 384) > 0.03:
            wrong.setdefault(name, []).append(f"the picture is {shown_w:.0f} x {shown_h:.0f}")
    assert wrong == {}
    assert alice.page.locator(".cap").count() == count


@pytest.mark.parametrize("zoom", ["200 %", "400 %"])
def test_case_62_figures_and_picture_reflow_when_zoomed(visitor: MakeVisitor, room: str, zoom: str) -> None:
    alice = visitor(viewport=dict(zip(("width", "height"), SIZES[zoom], strict=True))).open(room).until_playing()
    alice.page.keyboard.press("h")
    alice.until("document.getElementById('bitrate').textContent !== '–'")
    assert problems(alice) == []
    cut = """() => [...document.querySelectorAll('#hud, #hud *')].filter((node) => node.clientWidth > 0
      && (node.scrollWidth > node.clientWidth + 1 || node.getBoundingClientRect().right > innerWidth + 1)
      && getComputedStyle(node).display !== 'inline').map((node) => node.id || node.className)"""
    assert alice.page.evaluate(cut) == []
    assert picture(alice)[0] >= 300, "at 400 % the picture had 60 pixels"


@pytest.mark.parametrize(
    ("name", "able"), [("portrait", True), ("landscape", True), ("landscape", False), ("desktop", True)]
)
def test_case_53_full_screen_can_be_driven_prompted_and_left(
    visitor: MakeVisitor, room: str, name: str, able: bool
) -> None:
    width, height = SIZES[name]
    alice = visitor(viewport={"width": width, "height": height}, has_touch=name != "desktop")
    if not able:  # an iPhone
        alice.page.add_init_script("delete Element.prototype.requestFullscreen")
    alice.open(room).until_playing()
    before = picture(alice)
    alice.page.click("#fullscreen")
    alice.until("document.body.classList.contains('theatre')")
    assert (alice.page.evaluate("document.fullscreenElement !== null")) is able
    assert alice.page.locator(".bar").is_hidden()
    assert picture(alice)[0] >= before[0]
    assert problems(alice, finger=name != "desktop") == []
    alice.page.keyboard.down("ArrowLeft")
    alice.until("document.querySelector('.cap[data-control=left]').classList.contains('applied')")
    alice.page.keyboard.up("ArrowLeft")
    alice.page.fill("#prompt-text", "a red desert")
    alice.page.press("#prompt-text", "Enter")
    alice.until("/^Applied/.test(document.getElementById('now-label').textContent)")
    alice.page.click("#pause")
    alice.until("document.body.dataset.world === 'paused'")
    alice.page.click("#notice-act")
    alice.until("document.body.dataset.world === 'running'")
    alice.page.click("#leave-fullscreen")
    alice.until("!document.body.classList.contains('theatre') && document.fullscreenElement === null")
    assert alice.page.locator(".bar").is_visible()


@pytest.mark.parametrize("size", list(SIZES))
def test_the_lobby_fits_every_size(visitor: MakeVisitor, server: str, size: str) -> None:
    width, height = SIZES[size]
    alice = visitor(viewport={"width": width, "height": height}).open(server)
    alice.until("document.querySelectorAll('.world').length > 0")
    assert problems(alice, finger=size in FINGERS) == []
    assert alice.complaints == []


def test_a_server_by_invitation_says_so(visitor: MakeVisitor, server: str) -> None:
    alice = visitor()
    alice.page.route("**/v1/cards", lambda route: route.fulfill(status=401, json={"code": "no_token", "detail": "-"}))
    alice.open(server)
    alice.until("document.getElementById('worlds-none').textContent.startsWith('This server opens by invitation')")
