"""The prompt box in a real Chromium: nothing that somebody writes is lost, and what became of it is said."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from .conftest import Visitor, watched

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
HELD = "[...worldroom.held.held].join(' ')"
TEXT = "document.getElementById('prompt-text').value"


@pytest.fixture(scope="module")
def alice(browser: Browser, server: str) -> Iterator[Visitor]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield watched(context.new_page()).open(f"{server}/r/words").until_playing()
    context.close()


def test_case_45_the_box_keeps_focus_and_words_when_the_line_is_lost(alice: Visitor) -> None:
    alice.page.click("#prompt-text")
    alice.page.keyboard.type("a red ")
    alice.page.context.set_offline(True)
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.until("document.body.dataset.phase === 'lost'")
    alice.page.keyboard.type("desert wfph")
    assert alice.page.evaluate(TEXT) == "a red desert wfph"
    assert alice.page.evaluate("document.activeElement.id") == "prompt-text"
    assert alice.page.evaluate(HELD) == "", "no letter steered"
    assert not alice.page.evaluate("document.body.classList.contains('theatre')")
    assert alice.text("#prompt-why") == "Not connected: what you write is kept here"
    alice.page.keyboard.press("Enter")
    assert alice.page.evaluate(TEXT) == "a red desert wfph", "what cannot be sent stays"
    alice.page.context.set_offline(False)
    alice.until_playing()
    assert alice.page.evaluate("document.activeElement.id") == "prompt-text"
    alice.page.keyboard.press("Enter")
    alice.until("/^Applied/.test(document.getElementById('now-label').textContent)")


def test_case_45_the_box_keeps_focus_and_words_when_the_wheel_goes_to_somebody_else(
    visitor: MakeVisitor, room: str
) -> None:
    ada, bob = visitor().open(f"{room}?name=Ada").until_playing(), visitor().open(f"{room}?name=Bob").until_playing()
    ada.until("worldroom.world.people.length === 2")
    ada.page.click("#prompt-text")
    ada.page.keyboard.type("violet ")
    ada.page.evaluate("worldroom.room.ask({type: 'passwheel', to: worldroom.world.people[1].participant})")
    bob.until("document.body.dataset.role === 'driver'")
    ada.page.keyboard.type("dusk wp")
    assert ada.page.evaluate(TEXT) == "violet dusk wp"
    assert ada.page.evaluate("document.activeElement.id") == "prompt-text"
    ada.page.keyboard.press("Enter")
    assert ada.page.evaluate(TEXT) == "violet dusk wp"
    assert ada.text("#spoken") == "Whoever drives changes the world: ask for the wheel"


def test_case_46_words_that_are_refused_come_back_and_the_limit_counts_signs_as_people_do(alice: Visitor) -> None:
    limit = int(alice.number("worldroom.world.welcome.prompt_chars"))
    assert limit == 500
    alice.page.fill("#prompt-text", "\N{SNOWFLAKE}\N{ROCKET}" * (limit // 2))
    assert alice.page.locator("#prompt-why").is_hidden(), "a rocket is one sign, though two halves in JavaScript"
    alice.page.fill("#prompt-text", "\N{ROCKET}" * (limit + 1))
    assert alice.text("#prompt-why") == "1 character too long: this world takes 500"
    alice.page.press("#prompt-text", "Enter")
    assert alice.number(f"[...{TEXT}].length") == limit + 1
    # A server that counts otherwise has the last word, and the words come back.
    alice.page.evaluate("document.getElementById('prompt-text').value = ''")
    alice.page.evaluate("worldroom.world.welcome.prompt_chars = 1000")
    sent = "worldroom.room.prompt('x'.repeat(600)).catch(({ code, message }) => [code, message])"
    refused = alice.page.evaluate(sent)
    assert refused == ["prompt_too_long", "this world takes 500 characters, these are 600"]


def test_case_46_words_without_an_answer_come_back_when_the_line_is_lost(alice: Visitor) -> None:
    alice.page.fill("#prompt-text", "")
    alice.page.evaluate("worldroom.room.peer.channels.control.send = () => {}")  # it leaves and never arrives
    alice.page.fill("#prompt-text", "a green nebula")
    alice.page.press("#prompt-text", "Enter")
    assert (alice.page.evaluate(TEXT), alice.text("#now-label")) == ("", "Sent")
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.until(f"{TEXT} === 'a green nebula'")
    assert alice.text("#now-label") == "Not done"
    alice.until_playing()


def test_case_54_half_of_a_surrogate_pair_is_sent_as_a_sign_and_answered(alice: Visitor) -> None:
    alice.page.evaluate("document.getElementById('prompt-text').value = 'a red desert \\ud83d'")
    alice.page.press("#prompt-text", "Enter")
    alice.until("/^Applied/.test(document.getElementById('now-label').textContent)")
    raw = 'worldroom.room.peer.channels.control.send(\'{"type":"prompt","text":"a \\\\ud83d","id":77}\')'
    wait = "{ accept() {}, apply() {}, fail: ({ code }) => { globalThis.failed = code; } }"
    alice.page.evaluate(f"worldroom.room.asked.set(77, {wait})")
    alice.page.evaluate(raw)
    alice.until("globalThis.failed === 'malformed'")


def test_earlier_prompts_come_back_by_arrow_up_and_a_draft_survives_a_reload(alice: Visitor) -> None:
    for text in ("a calm blue sea", "a red desert"):
        alice.page.fill("#prompt-text", text)
        alice.page.press("#prompt-text", "Enter")
        alice.until("/^Applied/.test(document.getElementById('now-label').textContent)")
    alice.page.fill("#prompt-text", "half a thou")
    for key, text in (("ArrowUp", "a red desert"), ("ArrowUp", "a calm blue sea"), ("ArrowDown", "a red desert")):
        alice.page.press("#prompt-text", key)
        assert alice.page.evaluate(TEXT) == text
    alice.page.press("#prompt-text", "ArrowDown")
    assert alice.page.evaluate(TEXT) == "half a thou"
    alice.page.reload()
    alice.until_playing()
    assert alice.page.evaluate(TEXT) == "half a thou"


def test_every_suggestion_and_earlier_prompt_can_be_reached_and_a_blend_shows_its_share(alice: Visitor) -> None:
    alice.page.click("#ideas")
    suggested = alice.page.locator("#ideas-suggested button").all_inner_texts()
    assert suggested == alice.page.evaluate("worldroom.world.welcome.suggestions")
    assert "a red desert" in alice.page.locator("#ideas-before button").all_inner_texts()
    alice.page.keyboard.press("Escape")
    alice.page.select_option("#seconds", "2")
    alice.page.evaluate(
        "globalThis.shares = [];"
        "setInterval(() => { const bar = document.getElementById('share-of-blend');"
        "if (!bar.hidden) shares.push(bar.value); }, 50)"
    )
    alice.page.locator(".chip", has_text="violet dusk").click()
    alice.until("document.getElementById('share-of-blend').hidden && shares.length > 5")
    shares = alice.page.evaluate("shares")
    assert shares == sorted(shares)
    assert len(set(shares)) > 4 and max(shares) > 0.7


def test_case_50_words_that_mean_nothing_keep_the_look_and_come_back_and_the_others_are_named(
    visitor: MakeVisitor, drive: str
) -> None:
    alice = visitor().open(f"{drive}/r/talk").until_playing()
    say = "document.getElementById('now-understood').textContent"
    alice.page.fill("#prompt-text", "snowy night with a dinosaur")
    alice.page.press("#prompt-text", "Enter")
    alice.until(f"{say} === '(snowy, night; not understood: dinosaur)'")
    version = alice.number("worldroom.world.prompt.version")
    for nothing in ("雪の夜", "\N{ROCKET}\N{ROCKET}", "qwzx flurb"):
        alice.page.fill("#prompt-text", nothing)
        alice.page.press("#prompt-text", "Enter")
        alice.until("document.getElementById('now-label').textContent === 'Not done'")
        assert alice.text("#now-text").startswith("this world knows none of these words")
        assert alice.page.evaluate(TEXT) == nothing
    assert alice.number("worldroom.world.prompt.version") == version
    assert alice.world("prompt.text") == "snowy night with a dinosaur"
    alice.page.fill("#prompt-text", "noche nevada")
    alice.page.press("#prompt-text", "Enter")
    alice.until(f"{say} === '(nevada; not understood: noche)'")
