"""Several people drive one world, each with a browser: each page says what is whose, and nothing else answers."""

from collections.abc import Callable, Iterator

import pytest
from worldroom.clients.bench.server import serving

from .conftest import Visitor

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]


def together(visitor: MakeVisitor, address: str, *names: str) -> list[Visitor]:
    joint = "&" if "?" in address else "?"
    people = [visitor().open(f"{address}{joint}name={name}").until_playing() for name in names]
    for person in people:
        person.until(f"worldroom.world.people.length === {len(names)}")
    return people


def applied(control: str) -> str:
    return f"document.querySelector('.cap[data-control={control}]').classList.contains('applied')"


def theirs(person: Visitor) -> list[str]:
    found: list[str] = person.page.evaluate(
        "[...document.querySelectorAll('.cap.theirs')].map((c) => c.dataset.control)"
    )
    return sorted(found)


def test_two_share_the_controls_and_each_page_says_which_are_whose(visitor: MakeVisitor, room: str) -> None:
    ada, bob = together(visitor, f"{room}?drivers=controls:2", "Ada", "Bob")
    assert ada.text("#people-text") == "You steer left, right with 1 more"
    assert bob.text("#people-text") == "You steer up, down with 1 more"
    assert (theirs(ada), theirs(bob)) == (["down", "up"], ["left", "right"])
    bob.page.keyboard.down("ArrowLeft")
    bob.page.keyboard.down("ArrowUp")
    bob.until(applied("up"))
    assert not bob.page.evaluate(applied("left")), "that key is Ada's"
    assert bob.page.evaluate("[...worldroom.held.held]") == ["ArrowUp"]
    ada.page.keyboard.down("ArrowLeft")
    bob.until(f"{applied('left')} && {applied('up')}")
    ada.page.click("#home")
    ada.page.wait_for_url("**/")  # before her browser is closed
    bob.until(
        "document.getElementById('people-text').textContent === 'You steer left, right, up, down'"
        " || document.getElementById('people-text').textContent === 'You drive'"
    )
    assert theirs(bob) == [], "what nobody is there for"
    assert [*ada.complaints, *bob.complaints] == []


def test_who_watches_takes_the_free_place_and_two_exchange_theirs(visitor: MakeVisitor, room: str) -> None:
    ada = visitor().open(f"{room}?drivers=controls:2&name=Ada").until_playing()
    bob = visitor().open(f"{room}?watch&name=Bob").until_playing()
    bob.until("document.getElementById('wheel-text').textContent === 'Take up, down'")
    bob.page.click("#wheel")
    bob.until("document.body.dataset.role === 'driver'")
    ada.until("document.getElementById('toast-text').textContent === 'You steer left, right'")
    ada.page.click("#people")
    ada.page.get_by_role("button", name="Exchange places with Bob").click()
    bob.until("document.getElementById('toast-text').textContent === 'You steer left, right'")
    assert theirs(ada) == ["left", "right"]


def share(control: str) -> str:
    """How far down a control is, of those that may be pressed part of the way."""
    return f"document.querySelector('.cap[data-control={control}]').style.getPropertyValue('--share')"


def test_a_vote_presses_as_far_as_its_voters_do_on_average(visitor: MakeVisitor, room: str) -> None:
    ada, bob, cy = together(visitor, f"{room}?drivers=vote", "Ada", "Bob", "Cy")
    assert ada.text("#people-text") == "You vote with 2 more"
    ada.page.keyboard.down("ArrowLeft")
    ada.until(applied("left"))
    bob.page.keyboard.down("ArrowRight")
    ada.until(f"{share('left')} === '50%' && {share('right')} === '50%'")
    cy.page.keyboard.down("ArrowRight")
    ada.until(f"{share('left')} === '33%' && {share('right')} === '67%'")
    assert "pressed" in str(ada.page.locator(".cap[data-control=left]").get_attribute("class"))


def test_the_lobby_asks_who_drives_and_shows_where_one_may_join(visitor: MakeVisitor, server: str) -> None:
    ada = visitor().open(f"{server}/")
    ada.page.locator("#worlds a").first.wait_for()
    ada.page.select_option("#drivers", label="Everybody votes")
    ada.page.locator("#worlds a").first.click()
    ada.until_playing()
    assert ada.world("welcome.drivers") == "vote:8"
    name = ada.world("welcome.room")
    bob = visitor().open(f"{server}/")
    there = bob.page.locator("#live-list a", has_text=str(name))
    there.wait_for()
    assert "7 more may vote" in there.inner_text()
    there.click()
    bob.until_playing()
    assert bob.text("#people-text") == "You vote with 1 more"


def test_a_rule_that_a_world_cannot_have_is_said(visitor: MakeVisitor, room: str) -> None:
    ada = visitor().open(f"{room}?drivers=controls:left,fire")
    ada.until("document.body.innerText.includes('no control')")
    assert "this world has no control 'fire'" in ada.page.evaluate("document.body.innerText")


@pytest.fixture(scope="module")
def duo() -> Iterator[str]:
    with serving("toy-duo", "--option", "fps=12") as address:
        yield address


def test_two_players_of_one_world_have_all_controls_each(visitor: MakeVisitor, duo: str) -> None:
    ada, bob, cy = together(visitor, f"{duo}/r/duel", "Ada", "Bob", "Cy")
    texts = [person.text("#people-text") for person in (ada, bob, cy)]
    assert texts == [
        "You are player 1 with 1 more · 1 watching",
        "You are player 2 with 1 more · 1 watching",
        "Ada and Bob drive",
    ]
    bob.page.keyboard.down("ArrowLeft")
    bob.until(applied("left"))
    assert not ada.page.evaluate(applied("left")), "the first player presses nothing"
    ada.page.keyboard.down("ArrowUp")
    ada.until(f"{applied('up')} && !{applied('left')}")
    assert not bob.page.evaluate(applied("up"))
    for person in (ada, bob):
        person.until("worldroom.latency.samples.length === 1")
    assert [*ada.complaints, *bob.complaints] == []
