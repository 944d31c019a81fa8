"""The page when connections come and go: reload, cut, spectators, another tab, a full server, a browser that cannot."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Route
from worldroom.clients.bench.server import serving

from .conftest import Visitor, watched

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
CUT_MS = 5000
FULL = '{"code":"no_slot","detail":"4 of 4 slots are taken","reason":"no_slot","queue_place":2,"retry_after_s":3}'


def test_a_reload_and_a_cut_of_five_seconds_find_the_same_world(visitor: MakeVisitor, room: str) -> None:
    alice = visitor().open(room).until_playing()
    session, chunk = alice.world("welcome.session"), alice.number("worldroom.world.onScreen.chunk")
    alice.page.reload()
    alice.until_playing()
    assert alice.world("welcome.resumed") is True
    assert alice.world("welcome.session") == session
    assert alice.world("welcome.role") == "driver"
    assert alice.number("worldroom.world.welcome.chunk") > chunk

    chunk = alice.number("worldroom.world.onScreen.chunk")
    alice.page.context.set_offline(True)
    alice.page.evaluate("worldroom.room.peer.close('cut')")
    alice.page.wait_for_timeout(CUT_MS)
    assert alice.text("#notice-title") in ("Reconnecting", "The server does not answer")
    alice.page.context.set_offline(False)
    alice.until_playing()
    alice.until(f"worldroom.world.onScreen.chunk > {chunk} && worldroom.world.welcome.chunk > {chunk}")
    assert alice.world("welcome.session") == session
    assert alice.page.locator("#notice").is_hidden()
    alice.page.keyboard.down("ArrowRight")
    alice.until("document.querySelector('.cap[data-control=right]').classList.contains('applied')")


def test_the_second_one_watches_and_takes_the_wheel_when_it_is_free(visitor: MakeVisitor, room: str) -> None:
    alice = visitor().open(room).until_playing()
    bob = visitor().open(room).until_playing()
    assert bob.world("welcome.role") == "spectator"
    assert str(bob.text("#people-text")).endswith(" drives")
    assert alice.text("#people-text") == "You drive · 1 watching"
    assert bob.text("#prompt-why") == "Whoever drives changes the world: ask for the wheel"
    alice.page.keyboard.down("ArrowLeft")
    bob.until("document.querySelector('.cap[data-control=left]').classList.contains('applied')")
    alice.page.keyboard.up("ArrowLeft")

    alice.page.click("#people")
    alice.page.click("#wheel-acts button")
    bob.until("document.getElementById('people-text').textContent.startsWith('Nobody drives')")
    bob.page.click("#wheel")
    bob.until("document.body.dataset.role === 'driver'")
    bob.page.keyboard.down("ArrowRight")
    alice.until("document.querySelector('.cap[data-control=right]').classList.contains('applied')")
    assert alice.complaints == []
    assert bob.complaints == []


def test_the_driver_hands_the_wheel_to_somebody_by_name(visitor: MakeVisitor, room: str) -> None:
    ada = visitor().open(f"{room}?name=Ada").until_playing()
    bob = visitor().open(f"{room}?name=Bob").until_playing()
    eve = visitor().open(f"{room}?name=Eve").until_playing()
    assert eve.text("#people-text") == "Ada drives · 1 more watching"
    ada.page.click("#people")
    assert ada.text("#people-list").split("\n") == [
        *("Ada (you)", "drives"),
        *("Bob", "Give the wheel"),
        *("Eve", "Give the wheel"),
    ]
    ada.page.get_by_role("button", name="Give Eve the wheel").click()
    eve.until("document.body.dataset.role === 'driver'")
    bob.until("document.getElementById('people-text').textContent === 'Eve drives · 1 more watching'")
    assert ada.page.locator("#people-panel").is_hidden()
    assert ada.text("#wheel-text") == "Ask for the wheel"
    eve.until("document.getElementById('toast-text').textContent === 'You have the wheel'")
    eve.page.keyboard.down("ArrowRight")
    ada.until("document.querySelector('.cap[data-control=right]').classList.contains('applied')")
    assert [*ada.complaints, *bob.complaints, *eve.complaints] == []


def test_a_copied_tab_takes_the_place_over(visitor: MakeVisitor, room: str) -> None:
    first = visitor().open(room).until_playing()
    token = first.page.evaluate("worldroom.room.seat.token")
    key = first.page.evaluate("worldroom.room.seat.key")
    copy = watched(first.page.context.new_page())
    copy.page.add_init_script(f"sessionStorage.setItem({key!r}, {token!r})")
    copy.open(room).until_playing()
    first.until("document.body.dataset.phase === 'elsewhere'")
    assert first.text("#notice-title") == "This place is open in another tab"
    assert copy.world("welcome.resumed") is True
    first.page.click("#notice-act")
    first.until_playing()
    copy.until("document.body.dataset.phase === 'elsewhere'")


def test_a_full_server_is_asked_again_when_it_said(visitor: MakeVisitor, room: str) -> None:
    alice = visitor()
    asked = 0

    def refuse_once(route: Route) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            route.fulfill(status=503, content_type="application/json", body=FULL)
        else:
            route.continue_()

    alice.page.route("**/offer", refuse_once)
    alice.open(room)
    alice.until("document.body.dataset.phase === 'full'")
    assert alice.text("#notice-title") == "The server is full"
    assert "You are number 2 in line." in alice.text("#notice-text")
    assert alice.page.locator(".round:enabled:visible:not(#keep)").count() == 0, (
        "no world is there to pause, reset or like"
    )
    alice.until_playing()
    assert alice.page.locator(".round:enabled:visible:not(#keep)").count() == 4
    assert asked >= 2


def test_who_waits_in_line_sees_the_place_and_comes_in_by_itself(visitor: MakeVisitor) -> None:
    with serving("toy", "--option", "fps=12", "--slots", "1", "--lease", "1") as small:
        first, second = visitor(), visitor()
        first.open(f"{small}/r/first").until_playing()
        second.open(f"{small}/r/second")
        second.until("document.body.dataset.phase === 'full'")
        assert second.text("#notice-text") == "You are number 1 in line. The room opens by itself when it is your turn."
        first.page.close()
        second.until_playing()


def test_a_browser_without_webrtc_is_told_so(visitor: MakeVisitor, room: str) -> None:
    old = visitor()
    old.page.add_init_script("delete globalThis.RTCPeerConnection")
    old.open(room)
    old.until("document.body.dataset.phase === 'no-webrtc'")
    assert old.text("#notice-title") == "This browser has no WebRTC"


def test_a_browser_that_plays_none_of_our_codecs_is_told_so(visitor: MakeVisitor, room: str) -> None:
    free = visitor()
    free.page.add_init_script("RTCRtpReceiver.getCapabilities = () => ({ codecs: [{ mimeType: 'video/VP9' }] })")
    free.open(room)
    free.until("document.body.dataset.phase === 'no-codec'")
    assert free.text("#notice-title") == "This browser cannot play the video"


def test_case_65_an_empty_room_makes_room_for_who_waits_and_its_world_comes_back(visitor: MakeVisitor) -> None:
    with serving("toy", "--option", "fps=12", "--slots", "1", "--lease", "600") as small:
        first, second = visitor(), visitor()
        first.open(f"{small}/r/first").until_playing()
        session = first.world("welcome.session")
        first.until("worldroom.world.onScreen.chunk > 12")
        second.open(f"{small}/r/second")
        second.until("document.body.dataset.phase === 'full'")
        first.page.goto("about:blank")
        second.until_playing()
        second.page.close()
        back = visitor().open(f"{small}/r/first").until_playing()
        assert back.world("welcome.session") == session, "the world was suspended, not ended"
