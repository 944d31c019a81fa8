"""People in one room, each with a browser of their own: the wheel is asked for, given, refused, left and taken."""

from collections.abc import Callable

import av
import pytest

from .conftest import Visitor

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]


def together(visitor: MakeVisitor, room: str, *names: str) -> list[Visitor]:
    people = [visitor().open(f"{room}?name={name}").until_playing() for name in names]
    for person in people:
        person.until(f"worldroom.world.people.length === {len(names)}")
    return people


def test_who_watches_asks_and_who_drives_gives(visitor: MakeVisitor, room: str) -> None:
    ada, bob = together(visitor, room, "Ada", "Bob")
    bob.page.click("#wheel")
    bob.until("document.getElementById('wheel-text').textContent === 'Asked for the wheel'")
    ada.until("document.getElementById('asks').innerText.startsWith('Bob asks for the wheel')")
    ada.page.get_by_role("button", name="Give Bob the wheel").first.click()
    bob.until("document.body.dataset.role === 'driver'")
    assert bob.text("#toast-text") == "You have the wheel"
    assert bob.text("#spoken") == "You have the wheel"
    ada.until("document.getElementById('toast-text').textContent === 'Bob has the wheel now'")
    assert ada.page.locator("#asks > div").count() == 0
    bob.page.keyboard.down("ArrowRight")
    ada.until("document.querySelector('.cap[data-control=right]').classList.contains('applied')")
    assert [*ada.complaints, *bob.complaints] == []


def test_who_drives_may_say_not_now(visitor: MakeVisitor, room: str) -> None:
    ada, bob = together(visitor, room, "Ada", "Bob")
    bob.page.click("#wheel")
    ada.page.get_by_role("button", name="Not now").click()
    bob.until("document.getElementById('toast-text').textContent === 'the driver keeps the wheel'")
    bob.until("document.getElementById('wheel-text').textContent === 'Ask for the wheel'")
    assert ada.page.locator("#asks > div").count() == 0


def test_case_59_a_driver_who_leaves_for_the_lobby_leaves_the_wheel(visitor: MakeVisitor, room: str) -> None:
    ada, bob = together(visitor, room, "Ada", "Bob")
    ada.page.keyboard.down("ArrowLeft")
    ada.page.click("#home")
    ada.page.wait_for_url("**/")
    bob.until("document.getElementById('wheel-text').textContent === 'Take the wheel'")
    bob.page.click("#wheel")
    bob.until("document.body.dataset.role === 'driver'")
    assert bob.text("#people-text") == "You drive"


def test_case_59_a_lost_driver_keeps_the_wheel_for_seconds_that_are_counted_down(
    visitor: MakeVisitor, room: str
) -> None:
    ada, bob = together(visitor, room, "Ada", "Bob")
    ada.page.close()
    bob.until("/^Take the wheel in [0-9] s$/.test(document.getElementById('wheel-text').textContent)")
    assert bob.page.locator("#wheel").is_disabled()
    bob.until("document.getElementById('wheel-text').textContent === 'Take the wheel'")
    bob.page.click("#wheel")
    bob.until("document.body.dataset.role === 'driver'")


def test_names_that_look_alike_are_told_apart(visitor: MakeVisitor, room: str) -> None:
    people = together(visitor, room, "Ada", "ada", "Аda")  # the last one begins with a Cyrillic letter
    names = people[0].page.evaluate("worldroom.world.people.map(({ name }) => name)")
    assert names == ["Ada", "ada 2", "Аda 3"]


def test_case_63_sharing_shows_an_address_that_can_be_copied_without_a_name_in_it(
    visitor: MakeVisitor, room: str
) -> None:
    ada, bob = together(visitor, room, "Ada", "Bob")
    ada.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # plain http in a LAN
    ada.page.click("#share")
    assert ada.page.locator("#share-link").input_value() == room
    assert ada.text("#share-words") == "Whoever opens it watches you drive, and can ask for the wheel."
    ada.page.click("#share-copy")
    assert str(ada.text("#share-said")).startswith(("Copied.", "Selected:"))
    ada.page.keyboard.press("Escape")
    bob.page.click("#share")
    assert bob.text("#share-words") == "Whoever opens it watches with you, and can ask for the wheel."
    assert [*ada.complaints, *bob.complaints] == []


def test_a_picture_is_kept_as_it_is_shown(visitor: MakeVisitor, room: str) -> None:
    ada = visitor().open(room).until_playing()
    ada.page.click("#keep")
    with ada.page.expect_download() as download:
        ada.page.click("#keep-picture")
    assert download.value.suggested_filename.startswith("worldroom-test-")
    assert download.value.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_last_seconds_are_kept_as_a_film_that_plays(visitor: MakeVisitor, room: str) -> None:
    ada = visitor().open(room).until_playing()
    ada.until("worldroom.world.onScreen.chunk > 30")
    ada.page.click("#keep")
    with ada.page.expect_download() as download:
        ada.page.click("#keep-clip")
    assert download.value.suggested_filename.endswith(".mp4")
    with av.open(download.value.path()) as film:
        video = film.streams.video[0]
        frames = list(film.decode(video))
    assert (video.codec_context.width, video.codec_context.height) == (640, 384)
    assert len(frames) > 20
    assert ada.complaints == []
