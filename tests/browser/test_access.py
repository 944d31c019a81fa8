"""Everybody can use the page: axe-core finds nothing in any state, alerts speak once, colours can be forced."""

from collections.abc import Callable
from pathlib import Path

import pytest
import worldroom.clients.web
from playwright.sync_api import Route

from .conftest import Visitor

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
AXE = (Path(worldroom.clients.web.__file__).parent / "node_modules" / "axe-core" / "axe.min.js").read_text()
RULES = '{"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}'
REFUSAL = '{"code":"no_slot","detail":"4 of 4 slots are taken","reason":"no_slot","queue_place":%d,"retry_after_s":30}'


def violations(visitor: Visitor) -> list[str]:
    """What axe-core objects to, each with the elements concerned."""
    visitor.page.evaluate(AXE)
    found = visitor.page.evaluate(f"axe.run(document, {RULES}).then(({{ violations }}) => violations)")
    return [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in found]


def refusing(visitor: Visitor, place: int) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=503, content_type="application/json", body=REFUSAL % place)

    visitor.page.route("**/offer", refuse)


def lobby(alice: Visitor, room: str) -> None:
    alice.open(room.rpartition("/r/")[0])
    alice.until("document.querySelectorAll('.world').length > 0")


def wrong_address(alice: Visitor, room: str) -> None:
    alice.open(room.rpartition("/r/")[0] + "/nowhere")


def connecting(alice: Visitor, room: str) -> None:
    alice.page.route("**/offer", lambda _: None)
    alice.open(room)
    alice.until("document.getElementById('notice-title').textContent === 'Opening the room'")


def live(alice: Visitor, room: str) -> None:
    alice.open(room).until_playing()


def figures(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.click("#hud-toggle")


def steering(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.keyboard.down("ArrowLeft")
    alice.until("document.querySelector('.cap[data-control=left]').classList.contains('applied')")


def paused(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.click("#pause")
    alice.until("document.body.dataset.world === 'paused'")


def lost(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.context.set_offline(True)
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.until("document.body.dataset.phase === 'lost'")


def full(alice: Visitor, room: str) -> None:
    refusing(alice, 0)
    alice.open(room)
    alice.until("document.body.dataset.phase === 'full'")


def line(alice: Visitor, room: str) -> None:
    refusing(alice, 2)
    alice.open(room)
    alice.until("document.body.dataset.phase === 'full'")


def spectator(alice: Visitor, room: str) -> None:
    alice.open(f"{room}?watch").until_playing()


def helped(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.keyboard.press("?")
    alice.page.wait_for_selector("#help[open]")


def people(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.click("#people")


def ideas(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.click("#ideas")


def mixing(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.fill("#prompt-text", "a green nebula")
    alice.page.click("#mix")
    alice.page.click("#mix-more")
    alice.page.keyboard.type("violet dusk")
    alice.page.select_option("#mix-when", "in")
    alice.page.select_option("#mix-over", "chunks")


def scheduled(alice: Visitor, room: str) -> None:
    mixing(alice, room)
    alice.page.fill("#mix-begins", "600")
    alice.page.click("#mix-panel .mix-send")
    alice.page.wait_for_selector("#planned:visible")


def keeping(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.click("#keep")


def sharing(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.click("#share")


def theatre(alice: Visitor, room: str) -> None:
    live(alice, room)
    alice.page.click("#fullscreen")


BEFORE = (lobby, wrong_address, connecting, full, line)
PLAYING = (
    live,
    figures,
    steering,
    paused,
    lost,
    spectator,
    helped,
    people,
    ideas,
    mixing,
    scheduled,
    keeping,
    sharing,
    theatre,
)


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("state", (*BEFORE, *PLAYING), ids=lambda state: state.__name__)
def test_axe_finds_nothing(visitor: MakeVisitor, room: str, state: Callable[[Visitor, str], None], scheme: str) -> None:
    alice = visitor(color_scheme=scheme, reduced_motion="reduce")
    state(alice, room)
    alice.page.wait_for_timeout(100)
    assert violations(alice) == []
    alice.page.set_viewport_size({"width": 390, "height": 844})
    alice.page.wait_for_timeout(100)
    assert violations(alice) == [], "on a phone"


def test_an_alert_speaks_once_however_often_its_seconds_change(visitor: MakeVisitor, room: str) -> None:
    alice = visitor()
    refusing(alice, 0)
    alice.page.add_init_script(
        "addEventListener('DOMContentLoaded', () => { globalThis.said = [];"
        "new MutationObserver(() => said.push(document.getElementById('spoken').textContent))"
        ".observe(document.getElementById('spoken'), { childList: true, subtree: true, characterData: true }); });"
    )
    alice.open(room)
    alice.until("document.body.dataset.phase === 'full'")
    seconds = "document.getElementById('notice-text').textContent"
    first = alice.page.evaluate(seconds)
    alice.until(f"{seconds} !== {first!r}")
    assert alice.page.evaluate("said.filter((words) => words.startsWith('The server is full')).length") == 1
    regions = "[...document.querySelectorAll('[role=alert], [aria-live=assertive]')].map(({ id }) => id)"
    assert alice.page.evaluate(regions) == ["spoken"]


def test_forced_colours_show_what_is_pressed_and_applied(visitor: MakeVisitor, room: str) -> None:
    alice = visitor(forced_colors="active").open(room).until_playing()
    look = "getComputedStyle(document.querySelector('.cap[data-control=left]'))"
    rest = alice.page.evaluate(f"[{look}.backgroundColor, {look}.borderTopColor]")
    alice.page.keyboard.down("ArrowLeft")
    alice.until("document.querySelector('.cap[data-control=left]').classList.contains('applied')")
    applied = alice.page.evaluate(f"[{look}.backgroundColor, {look}.borderTopColor]")
    assert applied[0] != rest[0]
    assert alice.page.evaluate(f"{look}.borderTopWidth") == "3px"


def test_reduced_motion_turns_nothing_round(visitor: MakeVisitor, room: str) -> None:
    alice = visitor(reduced_motion="reduce")
    connecting(alice, room)
    ring = "getComputedStyle(document.querySelector('.notice-ring'))"
    assert alice.page.evaluate(f"{ring}.animationIterationCount") == "1"
