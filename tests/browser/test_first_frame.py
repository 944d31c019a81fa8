"""The page's picture button in a real Chromium, against a real server with a tiny Wan world."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from worldroom.clients.bench.server import serving
from worldroom.sessions.rooms.first_frames import UploadedMedia
from worldroom.tests.files import picture, video

from .conftest import Visitor

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tiny_wan() -> Iterator[str]:
    with serving("wan-tiny-random") as address:
        yield address


def test_a_picture_and_a_film_from_the_page_begin_the_world_anew(
    tiny_wan: str, visitor: Callable[..., Visitor], tmp_path: Path
) -> None:
    still, film, text = tmp_path / "still.jpg", tmp_path / "film.mp4", tmp_path / "notes.txt"
    still.write_bytes(picture(UploadedMedia.JPEG, np.full((300, 400, 3), (220, 40, 30), np.uint8)))
    film.write_bytes(video(UploadedMedia.MP4, [4 * n for n in range(40)], fps=16))
    text.write_text("no picture")
    driver = visitor().open(f"{tiny_wan}/r/studio").until_playing()
    assert driver.page.locator("#first-frame").is_visible()
    assert driver.page.locator("#recache").is_visible()
    assert driver.page.locator("#first-frame").is_enabled()
    chooser = driver.page.locator("#first-frame-file")
    for epoch, file in ((1, still), (2, film)):
        chooser.set_input_files(file)
        driver.until(f"worldroom.world.onScreen?.epoch === {epoch}")
        assert driver.text("#toast-text") == "The world begins from your picture"
    chooser.set_input_files(text)
    driver.until("document.getElementById('toast-text').textContent.startsWith('A world begins from a PNG')")
    assert driver.complaints == []


def test_a_world_of_words_alone_has_no_picture_button(room: str, visitor: Callable[..., Visitor]) -> None:
    driver = visitor().open(room).until_playing()
    assert driver.page.locator("#first-frame").is_hidden()
    assert driver.page.locator("#recache").is_hidden()
