"""Adapters on the page in a real Chromium: those a world begins with, a swap while it plays, a file that does not fit.

With WORLDROOM_SCREENS=FOLDER pictures of the panel are left there.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from worldroom.clients.bench.server import serving
from worldroom.tests.lora_files import MATRIX_GAME, peft_file

from .conftest import Visitor
from .geometry import problems
from .test_layout import SIZES as LAYOUT

pytestmark = pytest.mark.browser

MakeVisitor = Callable[..., Visitor]
SIZES = {"desktop": (1280, 800), "portrait": (390, 844)}


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Worlds that begin with half of `rain`. `foreign` was made for another model."""
    folder = tmp_path_factory.mktemp("adapters")
    for seed, name in enumerate(("rain", "snow")):
        peft_file(folder / f"{name}.safetensors", seed, rank=2)
    peft_file(folder / "foreign.safetensors", 2, rank=2, card=MATRIX_GAME)
    options = ("--adapters", str(folder), "--adapter", "rain=0.5", "--slots", "1", "--lease", "1", "--fps", "4")
    with serving("wan-tiny-random", *options) as address:
        yield address


def set_to(visitor: Visitor, name: str, value: str) -> None:
    """As a person does it who moves the slider and lets go."""
    slider = f"[...document.querySelectorAll('#adapters-list input')].find((one) => one.ariaLabel.endsWith('{name}'))"
    visitor.page.evaluate(
        f"(() => {{ const one = {slider}; one.value = '{value}'; one.dispatchEvent(new Event('change')); }})()"
    )


def stands(name: str, said: str) -> str:
    """The panel says so of an adapter."""
    rows = "[...document.querySelectorAll('#adapters-list label')].map((row) => row.innerText.replace(/\\s+/g, ' '))"
    return f"{rows}.includes('{name} {said}')"


def look(visitor: Visitor, name: str) -> None:
    if folder := os.environ.get("WORLDROOM_SCREENS"):
        for size, (width, height) in SIZES.items():
            visitor.page.set_viewport_size({"width": width, "height": height})
            visitor.page.wait_for_timeout(900)
            visitor.page.screenshot(path=Path(folder) / f"{name}-{size}.png")


def test_a_driver_swaps_adapters_live_and_a_wrong_file_changes_nothing(adapted: str, visitor: MakeVisitor) -> None:
    ada = visitor().open(f"{adapted}/r/fox?name=Ada").until_playing()
    crowded = {}
    for size, (width, height) in LAYOUT.items():
        if size == "400 %":
            continue  # three ways to change a prompt are one too many there, with adapters or without
        ada.page.set_viewport_size({"width": width, "height": height})
        crowded[size] = problems(ada)
    assert not any(crowded.values()), crowded
    ada.page.set_viewport_size({"width": 1280, "height": 800})
    ada.page.click("#adapters")
    for name, said in (("rain", "0.5"), ("snow", "off"), ("foreign", "off")):
        ada.until(stands(name, said))
    set_to(ada, "snow", "1.25")
    ada.until("worldroom.world.stack.some(({ name, scale }) => name === 'snow' && scale === 1.25)")
    ada.until(f"{stands('snow', '1.25')} && {stands('rain', '0.5')}")
    look(ada, "adapters")
    set_to(ada, "foreign", "1")
    ada.until("document.getElementById('adapters-said').innerText.startsWith(\"adapter 'foreign': key\")")
    ada.until(f"{stands('foreign', 'off')} && {stands('snow', '1.25')} && {stands('rain', '0.5')}")
    look(ada, "adapters-refused")
    set_to(ada, "rain", "0")
    ada.until("JSON.stringify(worldroom.world.stack) === JSON.stringify([{ name: 'snow', scale: 1.25 }])")
    bob = visitor().open(f"{adapted}/r/fox?name=Bob").until_playing()
    assert bob.world("stack") == [{"name": "snow", "scale": 1.25}], "whoever comes later is told"
    assert bob.page.locator("#adapters").is_disabled(), "and only who drives can change it"
    assert [line for line in ada.complaints if "422" not in line] == []
