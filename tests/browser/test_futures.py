"""Futures on the page in a real Chromium: four side by side, one click keeps one; another take, and the one before."""

from collections.abc import Callable

import pytest

from .conftest import Visitor

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
TILES = "document.querySelectorAll('#futures-tiles button').length"


def test_a_click_keeps_one_of_four_futures_and_everybody_sees_them(visitor: MakeVisitor, room: str) -> None:
    ada = visitor().open(f"{room}?name=Ada").until_playing()
    bob = visitor().open(f"{room}?name=Bob").until_playing()
    ada.page.click("#keep")
    ada.page.click("#future-several")
    for page in (ada, bob):
        page.until(f"{TILES} === 4")
    assert ada.text("#futures-tiles button:nth-child(2)") == "2: another chance"
    assert bob.page.locator("#futures-tiles button").first.is_disabled()
    late = visitor().open(room)
    late.until(f"{TILES} === 4")
    ada.page.click("#futures-tiles button:nth-child(3)")
    for page in (ada, bob, late):
        page.until(f"{TILES} === 0 && document.getElementById('futures').hidden")
    epoch = ada.world("epoch")
    assert epoch == 2, "the third in the picture is the second that was made"
    ada.until(f"worldroom.world.onScreen.epoch === {epoch}")


def test_another_take_is_kept_or_the_one_before(visitor: MakeVisitor, room: str) -> None:
    ada = visitor().open(room).until_playing()
    ada.page.click("#keep")
    ada.page.click("#future-again")
    ada.until("document.querySelectorAll('#futures-acts button').length === 4")
    assert ada.world("epoch") == 1
    ada.page.get_by_role("button", name="Keep the one before").click()
    ada.until("document.getElementById('futures').hidden && worldroom.world.onScreen.epoch === 2")
