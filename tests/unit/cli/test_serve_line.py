"""The line a server starts with."""

import pytest
from worldroom.cli.assemble import fitting
from worldroom.engine.api import Capacity, CardInfo

CARD = CardInfo("drive", "1", "Drive", 512, 320, 24, 1, (), (), 24_560, 0)


def device(name: str, fits: int, price_us: int = 24_560) -> Capacity:
    return Capacity("drive", name, 0, fits, 0.0, 0.9, price_us, 64, 256, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("devices", "line"),
    [
        ((device("cpu", 1),), "1 session fits (24.6 ms a chunk, cpu); further rooms wait in line."),
        ((device("cpu", 4),), "4 sessions fit (24.6 ms a chunk, cpu); further rooms wait in line."),
        (
            (device("cpu:0", 1), device("cpu:1", 2)),
            "3 sessions fit (24.6 ms a chunk, 2 devices); further rooms wait in line.",
        ),
    ],
)
def test_how_many_fit_and_what_happens_to_more(devices: tuple[Capacity, ...], line: str) -> None:
    assert fitting(CARD, devices) == line


def test_case_73_a_card_slower_than_its_pace_says_so() -> None:
    line = fitting(CARD, (device("cpu", 1, price_us=125_000),))
    assert line.startswith("slower than its pace: 8.0 fps here, not 24 (--fps 8 lets its clock go slower, --steps may")
    assert line.endswith("; 1 session fits (125.0 ms a chunk, cpu); further rooms wait in line.")
