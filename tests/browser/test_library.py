"""The library in a browser: pages of sessions, a film with what happened under it, two futures side by side."""

import asyncio
import tarfile
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import pytest
from worldroom.clients.bench.server import serving
from worldroom.rtc.access.keys import ApiKey
from worldroom.sessions.journal import events
from worldroom.tests.browser.conftest import Visitor
from worldroom.tests.browser.test_access import violations
from worldroom.tests.journaled_sessions import Shelf, happened, onward
from worldroom.tests.unit.test_film import encoded

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
KEY = ApiKey("studio", "s" * 40)
COUNT = 30


async def filled(folder: Path) -> None:
    """30 sessions of two worlds, the newest of them filmed and with two futures; the film of `s04` changes its size."""
    shelf, frames, now = Shelf(folder), encoded(64), time.time()
    for number in range(1, COUNT):
        card = "drive" if number % 10 == 0 else "toy"
        story = happened(12, card=card, liked=range(number % 3))
        if number == COUNT - 2:
            story[0] = onward(events.Origin(f"s{COUNT - 1}", 0, 8))[0]
        await shelf.write(f"s{number:02}", story, now - 3600.0 * number)
    for number in (1, 2, 3):
        await shelf.film(f"s{number:02}", frames[: 12 * number], turn=2)
    await shelf.film("s04", [*encoded(20), *encoded(20, 160, 96), *encoded(20)], turn=2)
    await shelf.turned("s00", frames, now - 60)


def aside(work: Coroutine[Any, Any, None]) -> None:
    """In a thread: this one has Playwright's loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("library")
    aside(filled(folder))
    with serving("toy", "--option", "fps=12", "--slots", "1", "--data", str(folder), "--journal", "disk") as address:
        yield f"{address}/library"


def test_sessions_are_shown_page_by_page_and_by_world(visitor: MakeVisitor, library: str) -> None:
    alice = visitor().open(library)
    alice.until("document.querySelectorAll('.session').length === 24")
    assert alice.text("#range") == "1 to 24 of 30"
    assert alice.text(".session:first-child .about").endswith(" min ago · 0:01 · 1 like · 1 film")
    alice.until("document.querySelector('.session img').naturalWidth === 160")
    alice.page.click("#older")
    alice.until("document.querySelectorAll('.session').length === 6")
    assert alice.text("#range") == "25 to 30 of 30" and alice.page.is_disabled("#older")
    alice.page.select_option("#card", "drive")
    alice.until("document.querySelectorAll('.session').length === 2")
    alice.page.reload()
    alice.until("document.querySelectorAll('.session').length === 2")
    assert alice.complaints == []


def test_a_film_plays_with_what_happened_under_it(visitor: MakeVisitor, library: str) -> None:
    alice = visitor().open(library)
    alice.page.click(".session:first-child a")
    alice.until("document.getElementById('video')?.readyState >= 2")
    events = alice.text("#events").replace("\n", " ")
    assert "“a town by night”" in events and "Like" in events and "Another future: " not in events
    alice.page.click("#events button:has-text('Like')")
    alice.until("Math.abs(document.getElementById('video').currentTime - 30 / 24) < 0.05")
    alice.until("parseFloat(document.getElementById('now').style.left) > 40")
    alice.page.select_option("#forks", "0")
    alice.until("document.getElementById('other').currentTime > 40 / 24 - 0.02")
    assert alice.text("#left-words") == "Future 0" and alice.text("#right-words") == "Future 1"
    alice.until("document.getElementById('video').paused && document.getElementById('video').currentTime > 1.5")
    apart = "document.getElementById('other').currentTime - document.getElementById('video').currentTime"
    assert alice.number(apart) == pytest.approx(16 / 24, abs=0.3)
    assert alice.complaints == []


WATCH_SIZES = """
    const video = document.getElementById('video');
    window.sizes = [];
    const seen = (_, { width, height }) => {
      if (sizes.at(-1) !== `${width}x${height}`) sizes.push(`${width}x${height}`);
      video.requestVideoFrameCallback(seen);
    };
    video.requestVideoFrameCallback(seen);
    video.currentTime = 0;
    video.muted = true;
    void video.play();
"""


def test_a_film_plays_to_its_end_through_other_sizes(visitor: MakeVisitor, library: str) -> None:
    alice = visitor().open(f"{library}?session=s04")
    alice.until("document.getElementById('video')?.readyState >= 2")
    alice.page.evaluate(f"() => {{{WATCH_SIZES}}}")
    alice.until("document.getElementById('video').ended")
    assert alice.number("document.getElementById('video').currentTime") == pytest.approx(60 / 24, abs=0.05)
    assert alice.page.evaluate("sizes") == ["320x192", "160x96", "320x192"]
    assert alice.complaints == []


def test_selected_sessions_are_exported_and_one_is_deleted(visitor: MakeVisitor, library: str, tmp_path: Path) -> None:
    alice = visitor().open(library)
    alice.until("document.querySelectorAll('.session').length === 24")
    alice.page.click(".session:nth-child(2) .box")
    alice.page.click(".session:nth-child(3) .box")
    assert alice.text("#chosen-count") == "2 selected"
    with alice.page.expect_download(timeout=150_000) as download:
        alice.page.click("#export")
    download.value.save_as(tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as tar:
        names = tar.getnames()
    assert "export/README.md" in names and sum(name.endswith(".tar") for name in names) == 2
    alice.page.click(".session:nth-child(4) a")
    alice.until("document.getElementById('video')?.readyState >= 1")
    alice.page.click("#delete")
    alice.page.click("#sure-yes")
    alice.until("document.getElementById('session-said').textContent.startsWith('Deleted: 30 entries')")
    alice.page.click("#back")
    alice.until("document.getElementById('range')?.textContent === '1 to 24 of 29'")


def test_the_driver_films_the_room_and_finds_it_in_the_library(visitor: MakeVisitor, library: str) -> None:
    driver = visitor().open(library.replace("/library", "/r/filmed")).until_playing()
    driver.page.click("#keep")
    driver.page.click("#keep-film")
    driver.until("document.getElementById('keep-film').getAttribute('aria-pressed') === 'true'")
    session, shown = driver.world("welcome.session"), driver.number("worldroom.world.onScreen.frame")
    driver.until(f"worldroom.world.onScreen.frame > {shown} + 24")
    driver.page.click("#keep")
    driver.page.click("#keep-film")
    driver.until("document.getElementById('keep-film').getAttribute('aria-pressed') === 'false'")
    watcher = visitor().open(library.replace("/library", "/r/filmed?watch")).until_playing()
    watcher.page.click("#keep")
    assert watcher.page.is_hidden("#keep-film")
    watcher.open(f"{library}?session={session}")
    watcher.until("document.getElementById('video')?.readyState >= 2")
    assert "going on" in watcher.text("#session-said")


def test_a_session_goes_on_in_a_new_room_from_what_its_film_shows(visitor: MakeVisitor, library: str) -> None:
    driver = visitor().open(library.replace("/library", "/r/before")).until_playing()
    session = driver.world("welcome.session")
    driver.page.click("#keep")
    driver.page.click("#keep-film")
    driver.until(f"worldroom.world.onScreen.frame > {driver.number('worldroom.world.onScreen.frame')} + 24")
    driver.page.click("#keep")
    driver.page.click("#keep-film")
    driver.until("document.getElementById('keep-film').getAttribute('aria-pressed') === 'false'")
    driver.open(f"{library}?session={session}")
    driver.until("document.getElementById('video')?.readyState >= 2")
    driver.page.evaluate("document.getElementById('video').currentTime = 1")
    driver.until("document.getElementById('video').currentTime === 1")
    driver.page.click("#onward")
    driver.until("globalThis.worldroom?.world.welcome")
    driver.until_playing()
    assert driver.world("welcome.session") != session
    assert driver.number("worldroom.world.welcome.chunk") > 8
    driver.open(f"{library}?session=s01")
    driver.page.click("#onward")
    driver.until("document.getElementById('notice-text')?.textContent.includes('it was made with')")


def test_a_session_is_replayed_live_in_a_room_where_nobody_steers(visitor: MakeVisitor, library: str) -> None:
    driver = visitor().open(library.replace("/library", "/r/again")).until_playing()
    session = driver.world("welcome.session")
    driver.until(f"worldroom.world.onScreen.frame > {driver.number('worldroom.world.onScreen.frame')} + 48")
    driver.open(f"{library}?session={session}")
    driver.until("document.getElementById('session-title').textContent.startsWith('again')")
    driver.page.click("#replay")
    driver.until("globalThis.worldroom?.world.welcome")
    driver.until("worldroom.world.onScreen?.chunk > 16")
    driver.page.click("#pause")
    driver.until("worldroom.world.state === 'paused'")
    assert driver.world("welcome.replay") == session != driver.world("welcome.session")
    for steers in ("#reset", "#like", "#prompt-send"):
        assert driver.page.is_disabled(steers), steers
    listen = "() => { globalThis.seen = []; worldroom.room.on('frame', ({ receipt }) => seen.push(receipt.chunk)); }"
    driver.page.evaluate(listen)
    driver.page.fill("#seek-range", "0")
    driver.until("document.getElementById('seek-at').textContent.startsWith('0:00 / 0:0')")
    driver.page.click("#pause")
    driver.until("document.getElementById('state-text').textContent === 'Replay'")
    driver.until("Math.min(...seen) < 12")
    driver.until("document.getElementById('notice-title').textContent === 'The replay is over'")
    driver.page.click("#notice-act")
    driver.until("worldroom.world.state === 'running'")
    driver.until_playing()
    assert driver.world("welcome.replay") == session
    listed = driver.open(f"{library}?session={session}")
    listed.until("document.getElementById('session-title').textContent.startsWith('again')")
    assert listed.complaints == []


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_nothing(visitor: MakeVisitor, library: str, scheme: str) -> None:
    alice = visitor(color_scheme=scheme, reduced_motion="reduce")
    for size in ({"width": 1280, "height": 800}, {"width": 390, "height": 844}):
        alice.page.set_viewport_size(size)  # type: ignore[arg-type]
        alice.open(library)
        alice.until("document.querySelectorAll('.session').length === 24")
        alice.page.click(".session:nth-child(2) .box")
        assert violations(alice) == []
        alice.open(f"{library}?session=s00")
        alice.until("document.getElementById('video')?.readyState >= 2")
        alice.page.select_option("#forks", "0")
        assert violations(alice) == []
        assert alice.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        alice.page.click("#delete")
        assert violations(alice) == []


def test_with_a_key_the_library_opens_by_the_token_of_its_address(visitor: MakeVisitor, tmp_path: Path) -> None:
    aside(Shelf(tmp_path).turned("s00", encoded(64), time.time() - 60))
    claims = {"iss": KEY.name, "exp": time.time() + 600, "video": {"roomCreate": True}}
    token = jwt.encode(claims, KEY.secret, "HS256")
    options = ("--data", str(tmp_path), "--journal", "disk", "--slots", "1", "--api-key", f"{KEY.name}:{KEY.secret}")
    with serving("toy", *options) as address:
        nobody = visitor().open(f"{address}/library")
        nobody.until("document.getElementById('list-said').textContent.startsWith('This library opens by invitation')")
        alice = visitor().open(f"{address}/library#token={token}")
        alice.until("document.querySelector('.session img')?.naturalWidth === 160")
        alice.page.click(".session a")
        alice.until("document.getElementById('video')?.readyState >= 2")
        assert alice.page.evaluate("document.getElementById('video').src.startsWith('blob:')")


def test_who_deletes_what_others_go_on_from_is_told_and_asked_again(visitor: MakeVisitor, library: str) -> None:
    alice = visitor().open(f"{library}?session=s29")
    alice.until("document.getElementById('events')?.children.length > 0")
    alice.page.click("#delete")
    alice.page.click("#sure-yes")
    alice.until("document.getElementById('sure-why').textContent.includes('go on from session s29 in s28')")
    alice.page.click("#sure-no")
    alice.page.click("#delete")
    assert "Its journal, its films" in alice.text("#sure-why")
    alice.page.click("#sure-yes")
    alice.until("document.getElementById('sure-why').textContent.includes('s28')")
    alice.page.click("#sure-yes")
    alice.until("document.getElementById('session-said').textContent.startsWith('Deleted: 32 entries')")
    assert all("409" in complaint for complaint in alice.complaints), "the browser notes what was refused"
