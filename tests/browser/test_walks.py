"""Somebody who has never seen it plays within ten seconds of opening the front door: by keys, touch, pad, labels alone.

The seconds are the page's own, from its front door being there to the first frame that contains what was pressed; the
test gives a busy machine more time and prints what it took.
"""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from .conftest import Visitor
from .test_hands import PADS, Fingers

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
APPLIED = "worldroom.world.onScreen?.applied.some((value) => value > 0)"
# Marks the moment at which the front door can be used, and keeps it through the way to the room.
FRONT = "sessionStorage.setItem('front', String(Date.now()))"
TOOK = "(Date.now() - Number(sessionStorage.getItem('front'))) / 1000"


def at_the_door(visitor: Visitor, server: str) -> Page:
    visitor.open(server)
    visitor.until("document.querySelectorAll('.world').length > 0")
    visitor.page.evaluate(FRONT)
    return visitor.page


def played(visitor: Visitor, how: str) -> None:
    visitor.until(APPLIED)
    seconds = visitor.number(TOOK)
    print(f"by {how}: {seconds:.1f} s from the front door to a world that answers")
    assert visitor.complaints == []


def in_room(visitor: Visitor) -> None:
    visitor.page.wait_for_url("**/r/*")
    visitor.until("document.body.dataset.shows === 'frames'")


def test_by_keyboard_alone(visitor: MakeVisitor, server: str) -> None:
    alice = visitor()
    page = at_the_door(alice, server)
    page.keyboard.press("Enter")  # the focus waits on "Play now"
    in_room(alice)
    assert "↑ up" in alice.text("#hint"), "what to press stands on the picture"
    page.keyboard.down("ArrowUp")
    played(alice, "keyboard")
    page.keyboard.up("ArrowUp")
    page.keyboard.press("/")
    page.keyboard.type("a red desert")
    page.keyboard.press("Enter")
    alice.until("/^Applied/.test(document.getElementById('now-label').textContent)")
    page.keyboard.press("p")
    alice.until("document.body.dataset.world === 'paused'")
    page.keyboard.press("Enter")
    alice.until("document.body.dataset.world === 'running'")
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    alice.until("document.body.classList.contains('theatre')")
    page.keyboard.press("f")
    alice.until("!document.body.classList.contains('theatre')")


def test_by_touch_alone(visitor: MakeVisitor, server: str) -> None:
    alice = visitor(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = at_the_door(alice, server)
    page.tap("#play")
    in_room(alice)
    fingers = Fingers(alice)
    fingers.at("touchStart", fingers.middle("up"))
    played(alice, "touch")
    fingers.at("touchEnd")
    page.tap(".chip:has-text('a red desert')")
    alice.until("/^Applied/.test(document.getElementById('now-label').textContent)")
    page.tap("#pause")
    alice.until("document.body.dataset.world === 'paused'")
    page.tap("#notice-act")
    alice.until("document.body.dataset.world === 'running'")
    page.tap("#fullscreen")
    alice.until("document.body.classList.contains('theatre')")
    page.tap("#leave-fullscreen")
    alice.until("!document.body.classList.contains('theatre')")


def test_by_pad_alone(visitor: MakeVisitor, server: str) -> None:
    alice = visitor()
    alice.page.add_init_script(PADS + "plug(0);")
    page = at_the_door(alice, server)
    page.evaluate("pads[0].buttons = { 0: 1 }")  # A on "Play now"
    in_room(alice)
    page.evaluate("(plug(0), frames(5))")
    page.evaluate("(pads[0].axes[1] = -0.8, frames(5))")
    played(alice, "pad")
    page.evaluate("(pads[0].axes[1] = 0, pads[0].buttons = { 9: 1 }, frames(5))")  # Start pauses
    alice.until("document.body.dataset.world === 'paused'")
    page.evaluate("(pads[0].buttons = {}, frames(5))")
    page.evaluate("(pads[0].buttons = { 0: 1 }, frames(5))")  # A on "Resume"
    alice.until("document.body.dataset.world === 'running'")
    page.evaluate("(pads[0].buttons = {}, frames(5))")


def test_by_the_labels_of_a_screen_reader_alone(visitor: MakeVisitor, server: str) -> None:
    alice = visitor()
    page = at_the_door(alice, server)
    page.get_by_role("link", name="Play now").click()
    in_room(alice)
    page.get_by_role("button", name="up", exact=True).evaluate("(cap) => cap.click()")
    played(alice, "labels")
    assert page.get_by_role("button", name="up", exact=True, pressed=True).count() == 1
    page.get_by_role("textbox", name="Describe the world").fill("a red desert")
    page.get_by_role("button", name="Change the world").click()
    alice.until("/^Applied/.test(document.getElementById('now-label').textContent)")
    page.get_by_role("button", name="Pause").click()
    alice.until("document.getElementById('spoken').textContent.startsWith('Paused')")
    page.get_by_role("button", name="Resume").first.click()
    alice.until("document.body.dataset.world === 'running'")
    page.get_by_role("button", name="Help").click()
    assert page.get_by_role("dialog", name="How this works").is_visible()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Worldroom: all worlds").click()
    page.wait_for_url(f"{server}/")
