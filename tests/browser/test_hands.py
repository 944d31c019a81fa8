"""Every hand in a real Chromium: keyboard, mouse, fingers, pads, switches; what the page holds reaches the world."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from .conftest import Visitor, pretend_controls, watched

pytestmark = pytest.mark.browser

HELD = "[...worldroom.held.held].join(' ')"
LEVELS = "JSON.stringify(worldroom.held.level())"

# A pad that the test moves: `pads[i]` are axes and buttons, null = unplugged.
PADS = """
globalThis.pads = [];
navigator.getGamepads = () => pads.map((pad, index) => pad && ({
  index, id: 'pad ' + index, connected: true, mapping: 'standard', axes: pad.axes,
  buttons: Array.from({ length: 17 }, (_, i) => ({ value: pad.buttons[i] ?? 0, pressed: (pad.buttons[i] ?? 0) > 0.5 })),
}));
globalThis.plug = (index, axes = [0, 0, 0, 0], buttons = {}) => {
  pads[index] = { axes, buttons };
  dispatchEvent(new Event('gamepadconnected'));
};
globalThis.frames = (n) => new Promise((done) => {
  const next = () => (n-- > 0 ? requestAnimationFrame(next) : done());
  next();
});
"""


@pytest.fixture(scope="module")
def alice(browser: Browser, server: str) -> Iterator[Visitor]:
    """The driver of one world, with pads that can be moved."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    visitor = watched(context.new_page())
    visitor.page.add_init_script(PADS)
    yield visitor.open(f"{server}/r/hands").until_playing()
    context.close()


@pytest.fixture(autouse=True)
def nothing_held(alice: Visitor) -> None:
    alice.page.evaluate("(pads.length = 0, frames(3))")
    for key in ("ArrowUp", "ArrowLeft", "ArrowRight", "KeyW", "Meta"):
        alice.page.keyboard.up(key)
    alice.until(f"{HELD} === ''")


def key(alice: Visitor, kind: str, code: str, key: str, **modifiers: bool) -> None:
    alice.page.evaluate(
        "([kind, init]) => document.body.dispatchEvent(new KeyboardEvent(kind, init))",
        [kind, {"code": code, "key": key, "bubbles": True, "cancelable": True} | modifiers],
    )


# ---- keyboard -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modifier", ["Meta", "Control", "Alt", "Shift"])
def test_case_44_a_key_whose_keyup_was_swallowed_is_let_go_with_the_modifier(alice: Visitor, modifier: str) -> None:
    key(alice, "keydown", "ArrowUp", "ArrowUp")
    key(alice, "keydown", f"{modifier}Left", modifier)
    assert alice.page.evaluate(HELD) == "ArrowUp"
    key(alice, "keyup", f"{modifier}Left", modifier)  # on a Mac the keyup of ArrowUp never came
    assert alice.page.evaluate(HELD) == ""
    key(alice, "keydown", "ArrowUp", "ArrowUp", repeat=True)
    assert alice.page.evaluate(HELD) == "ArrowUp", "a key that is really held comes back by its own repeat"
    key(alice, "keyup", "ArrowUp", "ArrowUp")


def test_case_44_a_context_menu_lets_go(alice: Visitor) -> None:
    alice.page.keyboard.down("ArrowUp")
    alice.page.evaluate("dispatchEvent(new MouseEvent('contextmenu'))")
    assert alice.page.evaluate(HELD) == ""


def test_case_52_shortcuts_go_by_letter_and_repeats_do_nothing(alice: Visitor) -> None:
    key(alice, "keydown", "KeyR", "h")  # Dvorak-like: the letter h lies where R is printed
    assert alice.page.locator("#hud").is_visible()
    for _ in range(7):
        key(alice, "keydown", "KeyR", "h", repeat=True)
    assert alice.page.locator("#hud").is_visible()
    key(alice, "keydown", "KeyH", "d")
    assert alice.page.locator("#hud").is_visible(), "the place of h on another layout is no h"
    key(alice, "keydown", "KeyR", "h")
    assert alice.page.locator("#hud").is_hidden()


@pytest.mark.parametrize("choice", ["Cut", "Blend"])
def test_case_57_a_click_on_a_choice_leaves_the_keyboard_to_the_world(alice: Visitor, choice: str) -> None:
    alice.page.locator("#transition label", has_text=choice).click()
    alice.page.keyboard.down("KeyW")
    assert alice.page.evaluate(HELD) == "KeyW"
    alice.page.keyboard.up("KeyW")


def test_a_choice_that_was_reached_by_tab_keeps_its_own_keys(alice: Visitor) -> None:
    alice.page.click("#prompt-text")
    alice.page.keyboard.press("Tab")
    alice.page.keyboard.press("ArrowRight")
    assert alice.page.locator("#transition input:checked").get_attribute("value") == "cut"
    assert alice.page.evaluate(HELD) == ""
    alice.page.keyboard.press("ArrowLeft")
    alice.page.locator("#picture").focus()


def test_a_switch_holds_a_cap_by_enter_and_a_click_without_a_pointer_until_the_next(alice: Visitor) -> None:
    left = alice.page.locator(".cap[data-control=left]")
    left.focus()
    alice.page.keyboard.down("Enter")
    assert alice.page.evaluate(HELD) == "ArrowLeft"
    assert left.get_attribute("aria-pressed") == "true"
    alice.page.keyboard.up("Enter")
    assert alice.page.evaluate(HELD) == ""
    left.evaluate("(cap) => cap.click()")
    assert alice.page.evaluate(HELD) == "ArrowLeft"
    left.evaluate("(cap) => cap.click()")
    assert alice.page.evaluate(HELD) == ""


# ---- fingers --------------------------------------------------------------------------------------------------------


class Fingers:
    """Touches by the browser's own protocol: each call says where all fingers are now."""

    def __init__(self, alice: Visitor) -> None:
        self._touch = alice.page.context.new_cdp_session(alice.page)
        self._alice = alice

    def at(self, kind: str, *points: tuple[float, float]) -> None:
        down = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        self._touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": down})

    def middle(self, control: str) -> tuple[float, float]:
        box = self._alice.page.locator(f".cap[data-control={control}]").bounding_box()
        assert box is not None
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture
def phone(alice: Visitor) -> Iterator[Fingers]:
    alice.page.set_viewport_size({"width": 390, "height": 844})
    yield Fingers(alice)
    alice.page.set_viewport_size({"width": 1280, "height": 800})


def test_case_55_a_finger_slides_from_cap_to_cap_and_between_them_means_both(alice: Visitor, phone: Fingers) -> None:
    (x0, y), (x1, _) = phone.middle("left"), phone.middle("right")
    phone.at("touchStart", (x0, y))
    alice.until(f"{HELD} === 'ArrowLeft'")
    phone.at("touchMove", ((x0 + x1) / 2, y))
    alice.until(f"{HELD} === 'ArrowLeft ArrowRight'")
    phone.at("touchMove", (x1, y))
    alice.until(f"{HELD} === 'ArrowRight'")
    phone.at("touchEnd")
    alice.until(f"{HELD} === ''")


def test_case_55_two_fingers_on_one_cap_are_one_press_until_both_are_up(alice: Visitor, phone: Fingers) -> None:
    x, y = phone.middle("left")
    phone.at("touchStart", (x - 10, y))
    phone.at("touchStart", (x - 10, y), (x + 10, y))
    alice.until(f"{HELD} === 'ArrowLeft'")
    phone.at("touchEnd", (x - 10, y))
    alice.page.wait_for_timeout(100)
    assert alice.page.evaluate(HELD) == "ArrowLeft"
    phone.at("touchEnd")
    alice.until(f"{HELD} === ''")


def test_case_55_a_finger_that_stays_down_through_a_reconnect_steers_on(alice: Visitor, phone: Fingers) -> None:
    phone.at("touchStart", phone.middle("left"))
    alice.until("document.querySelector('.cap[data-control=left]').classList.contains('applied')")
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.until("document.body.dataset.phase === 'lost'")
    assert alice.page.locator(".cap.pressed, .cap.applied").count() == 0, "nothing is pressed where there is no line"
    alice.until_playing()
    alice.until("document.querySelector('.cap[data-control=left]').classList.contains('applied')")
    phone.at("touchEnd")
    alice.until("!document.querySelector('.cap[data-control=left]').classList.contains('applied')")


# ---- pads -----------------------------------------------------------------------------------------------------------


def test_case_48_a_wheel_at_rest_steers_nothing_and_a_stick_goes_part_of_the_way(alice: Visitor) -> None:
    alice.page.evaluate("(plug(0, [0, -1, 1, 1]), frames(5))")
    assert alice.page.evaluate(LEVELS) == "[]"
    alice.page.evaluate("(pads[0].axes[0] = 0.575, frames(5))")
    assert alice.page.evaluate(LEVELS) == "[[1,0.5]]"
    alice.until("worldroom.world.onScreen.applied[1] === 0.5")
    alice.page.evaluate("(pads[0].axes[0] = 0, frames(5))")
    assert alice.page.evaluate(LEVELS) == "[]"


def test_case_48_the_second_pad_is_read_too_and_each_source_holds_its_own(alice: Visitor) -> None:
    alice.page.evaluate("(plug(0), plug(1), frames(5))")
    alice.page.keyboard.down("ArrowLeft")
    alice.page.evaluate("(pads[1].buttons = { 14: 1 }, frames(5))")
    assert alice.page.evaluate(LEVELS) == "[[0,1]]"
    alice.page.evaluate("(pads[1].buttons = {}, frames(5))")
    assert alice.page.evaluate(LEVELS) == "[]"
    assert alice.page.evaluate(HELD) == "ArrowLeft", "a pad's tap lets go of nothing that the keyboard holds"
    alice.page.keyboard.up("ArrowLeft")


def test_case_48_a_trigger_that_stays_down_through_a_reconnect_steers_on(alice: Visitor) -> None:
    alice.page.evaluate("(plug(0), frames(5))")
    alice.page.evaluate("(pads[0].buttons = { 7: 1 }, frames(5))")
    alice.until("worldroom.world.onScreen.applied[2] === 1")
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.until("document.body.dataset.phase === 'lost'")
    alice.until_playing()
    alice.until("worldroom.world.onScreen.applied[2] === 1")


def test_case_48_a_pad_is_silent_while_somebody_writes_or_the_page_has_no_focus(alice: Visitor) -> None:
    alice.page.evaluate("(plug(0), frames(5))")
    alice.page.click("#prompt-text")
    alice.page.evaluate("(pads[0].axes[0] = 1, frames(5))")
    assert alice.page.evaluate(LEVELS) == "[]"
    alice.page.locator("#prompt-text").blur()
    alice.page.evaluate("frames(5)")
    assert alice.page.evaluate(LEVELS) == "[[1,1]]"
    alice.page.evaluate("(document.hasFocus = () => false, frames(5))")
    assert alice.page.evaluate(LEVELS) == "[]"
    alice.page.evaluate("delete document.hasFocus")


def test_a_pad_that_is_unplugged_lets_go(alice: Visitor) -> None:
    alice.page.evaluate("(plug(0), frames(5))")
    alice.page.evaluate("(pads[0].axes[0] = -1, frames(5))")
    assert alice.page.evaluate(LEVELS) == "[[0,1]]"
    alice.page.evaluate("(pads[0] = null, frames(5))")
    assert alice.page.evaluate(LEVELS) == "[]"


# ---- looking around -------------------------------------------------------------------------------------------------


def test_a_world_that_takes_motion_gets_it_from_a_finger_a_locked_mouse_and_the_right_stick(
    visitor: Callable[..., Visitor], room: str
) -> None:
    eve = visitor()
    eve.page.add_init_script(PADS)
    eve.page.add_init_script(pretend_controls([("forward", ["KeyW"]), ("jump", ["Space"])], pointer=True))
    eve.open(room).until_playing()
    box = eve.page.locator("#frame").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = Fingers(eve)
    touch.at("touchStart", (x, y))
    touch.at("touchMove", (x + box["width"] / 4, y))
    touch.at("touchEnd")
    eve.until("Math.abs(worldroom.held.pointer[0] - 0.25) < 0.01 && worldroom.held.pointer[1] === 0")
    eve.page.evaluate("(plug(0), frames(5))")
    eve.page.evaluate("(pads[0].axes[3] = -1, frames(20))")
    eve.until("worldroom.held.pointer[1] < -0.05")
    eve.page.evaluate("(pads[0].axes[3] = 0)")
    eve.page.mouse.click(x, y)
    eve.until("document.pointerLockElement === document.getElementById('frame')")
    assert eve.complaints == []
