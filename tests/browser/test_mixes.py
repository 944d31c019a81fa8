"""Mixes and schedules in a real Chromium: several texts with shares, from a chunk on, by mouse, keyboard and finger."""

from collections.abc import Callable

import pytest

from .conftest import Visitor
from .geometry import problems
from .test_layout import FINGERS, SIZES

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
NOW = "document.getElementById('now-text').textContent"
LABEL = "document.getElementById('now-label').textContent"
PLANNED = "document.getElementById('planned').textContent"
SHARES = "[...document.querySelectorAll('.mix-row:not([hidden]) .share')].map((share) => parseInt(share.textContent))"
LISTEN = """globalThis.turns = []; void worldroom.room.on('message', ({ type, prompt_version, chunk }) => {
  if (type === 'receipt' && prompt_version !== turns.at(-1)?.[0]) turns.push([prompt_version, chunk]);
});"""


def slide(alice: Visitor, row: int, share: int) -> None:
    alice.page.locator(".mix-row:not([hidden]) input[type=range]").nth(row).fill(str(share))


def test_two_texts_become_one_world_and_everybody_reads_which_and_what_it_knows(
    visitor: MakeVisitor, drive: str
) -> None:
    alice = visitor().open(f"{drive}/r/mix").until_playing()
    bob = visitor().open(f"{drive}/r/mix?watch").until_playing()
    alice.page.fill("#prompt-text", "snowy night")
    alice.page.click("#mix")
    alice.page.click("#mix-more")
    alice.page.keyboard.type("desert dinosaur")
    slide(alice, 0, 70)
    assert alice.page.evaluate(SHARES) == [70, 30]
    alice.page.click("#mix-panel .mix-send")
    said = "70 % snowy night + 30 % desert dinosaur"
    for page in (alice, bob):
        page.until(f"{NOW} === '{said}'")
        page.until("document.getElementById('now-understood').textContent.endsWith('not understood: dinosaur)')")
        assert page.text("#now-understood").startswith("(snowy, night, desert")
        assert page.world("prompt.others") == [{"text": "desert dinosaur", "weight": 30}]
    assert alice.page.evaluate("document.getElementById('prompt-text').value") == ""
    alice.page.click("#mix")
    assert alice.page.locator(".mix-row:visible").count() == 0, "the next one begins simple"
    alice.page.reload()
    alice.until(f"{NOW} === '{said}'")
    assert alice.complaints == []


def test_texts_come_and_go_up_to_the_worlds_number_and_their_shares_stay_a_hundred(
    visitor: MakeVisitor, room: str
) -> None:
    alice = visitor().open(room).until_playing()
    most = int(alice.number("worldroom.world.welcome.prompts_max"))
    alice.page.click("#mix")
    for texts in range(2, most + 1):
        alice.page.click("#mix-more")
        assert len(alice.page.evaluate(SHARES)) == texts
        assert sum(alice.page.evaluate(SHARES)) == 100
    assert alice.page.locator("#mix-more").is_hidden()
    slide(alice, 2, 90)
    assert (alice.page.evaluate(SHARES)[2], sum(alice.page.evaluate(SHARES))) == (90, 100)
    alice.page.get_by_label("Take this text out").nth(1).click()
    assert (len(alice.page.evaluate(SHARES)), sum(alice.page.evaluate(SHARES))) == (most - 1, 100)
    assert alice.page.evaluate("document.activeElement.id") == "mix-more"


def test_a_prompt_says_that_it_waits_and_begins_at_its_chunk(visitor: MakeVisitor, room: str) -> None:
    alice = visitor().open(room).until_playing()
    alice.page.evaluate(LISTEN)
    alice.page.fill("#prompt-text", "violet dusk")
    alice.page.click("#mix")
    alice.page.select_option("#mix-when", "at")
    at = int(alice.number("worldroom.world.onScreen.chunk")) + 90
    alice.page.fill("#mix-begins", str(at))
    alice.page.select_option("#mix-over", "chunks")
    alice.page.fill("#mix-lasts", "12")
    alice.page.press("#mix-lasts", "Enter")
    alice.until(f"{LABEL} === 'Scheduled' && {NOW} === 'for chunk {at}'")
    bob = visitor().open(room)
    for page in (alice, bob):
        page.until(f"{PLANNED}.startsWith('Then at chunk {at}, in ') && {PLANNED}.endsWith(': violet dusk')")
    assert alice.world("prompt.text") != "violet dusk"
    alice.until("!document.getElementById('share-of-blend').hidden")
    alice.until("document.getElementById('share-of-blend').hidden")
    assert alice.page.locator("#planned").is_hidden()
    assert alice.page.evaluate("turns.at(-1)") == [alice.number("worldroom.world.prompt.version"), at]


def test_what_begins_first_ends_what_was_asked_before_and_its_words_are_among_the_earlier(
    visitor: MakeVisitor, room: str
) -> None:
    alice = visitor().open(room).until_playing()
    alice.page.fill("#prompt-text", "a red desert")
    alice.page.click("#mix")
    alice.page.select_option("#mix-when", "in")
    alice.page.fill("#mix-begins", "300")
    chunk = int(alice.text("#mix-said").rstrip(".").rpartition(" ")[2])
    assert abs(chunk - alice.number("worldroom.world.onScreen.chunk") - 3600) < 400, "12 chunks a second"
    alice.page.click("#mix-panel .mix-send")
    alice.until(f"{PLANNED} !== ''")
    alice.page.locator(".chip", has_text="violet dusk").click()
    alice.until(f"{PLANNED} === '' && worldroom.world.prompt.text === 'violet dusk'")
    assert alice.page.evaluate("document.getElementById('prompt-text').value") == ""
    alice.page.press("#prompt-text", "ArrowUp")
    assert "a red desert" in alice.page.evaluate("JSON.parse(localStorage.getItem('worldroom:prompts'))")


def test_a_mix_without_an_answer_comes_back_whole(visitor: MakeVisitor, room: str) -> None:
    alice = visitor().open(room).until_playing()
    alice.page.fill("#prompt-text", "a red desert")
    alice.page.click("#mix")
    alice.page.click("#mix-more")
    alice.page.keyboard.type("violet dusk")
    slide(alice, 1, 20)
    alice.page.evaluate("worldroom.room.peer.channels.control.send = () => {}")
    alice.page.click("#mix-panel .mix-send")
    assert alice.text("#now-label") == "Sent"
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.until("document.getElementById('prompt-text').value === 'a red desert'")
    assert alice.page.evaluate(SHARES) == [80, 20]
    assert alice.page.get_by_label("Text to mix in").input_value() == "violet dusk"
    assert alice.page.get_by_label("Mix and time: set").is_visible()


def test_keys_alone_reach_everything_and_steer_nothing_meanwhile(visitor: MakeVisitor, room: str) -> None:
    alice = visitor().open(room).until_playing()
    alice.page.focus("#ideas")
    alice.page.keyboard.press("Tab")
    assert alice.page.evaluate("document.activeElement.id") == "mix"
    alice.page.keyboard.press("Enter")
    alice.page.keyboard.press("Enter")
    alice.page.keyboard.type("violet dusk")
    alice.page.keyboard.press("Tab")
    for _ in range(3):
        alice.page.keyboard.press("ArrowRight")
    assert alice.page.evaluate(SHARES) == [47, 53]
    assert alice.page.evaluate("worldroom.held.held.size") == 0
    alice.page.keyboard.press("Escape")
    assert alice.page.evaluate("document.activeElement.id") == "mix"
    alice.page.fill("#prompt-text", "a red desert")
    alice.page.press("#prompt-text", "Enter")
    alice.until(f"{NOW} === '47 % a red desert + 53 % violet dusk'")


def test_a_finger_mixes_on_a_phone_and_nothing_is_too_small(visitor: MakeVisitor, room: str) -> None:
    alice = visitor(viewport={"width": 390, "height": 844}, has_touch=True).open(room).until_playing()
    alice.page.fill("#prompt-text", "a red desert")
    alice.page.tap("#mix")
    alice.page.tap("#mix-more")
    alice.page.keyboard.type("violet dusk")
    alice.page.locator(".mix-row input[type=range]").nth(1).tap()
    small = """[...document.querySelectorAll('#mix-panel :is(button, input, select)')]
      .filter((node) => node.offsetParent)
      .map((node) => [node.id || node.className || node.type, node.getBoundingClientRect()])
      .filter(([, box]) => Math.min(box.width, box.height) < 43.5 || box.right > innerWidth).map(([name]) => name)"""
    for name in FINGERS:
        width, height = SIZES[name]
        alice.page.set_viewport_size({"width": width, "height": height})
        assert problems(alice, finger=True) == []
        assert alice.page.evaluate(small) == [], name
    alice.page.tap("#mix-panel .mix-send")
    alice.until(f"{NOW} === '50 % a red desert + 50 % violet dusk'")


def test_a_world_that_takes_one_text_alone_has_no_expander(visitor: MakeVisitor, room: str) -> None:
    alice = visitor()
    alice.page.add_init_script(
        "const parse = JSON.parse; JSON.parse = (...args) => { const value = parse(...args);"
        "if (value?.type === 'welcome') value.prompts_max = 1; return value; };"
    )
    alice.open(room).until_playing()
    assert alice.page.locator("#mix").is_hidden()
    alice.page.fill("#prompt-text", "a red desert")
    alice.page.press("#prompt-text", "Enter")
    alice.until("worldroom.world.prompt.text === 'a red desert'")
