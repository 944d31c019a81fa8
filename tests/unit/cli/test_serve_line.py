"""The line a server starts with."""

import pytest
from worldroom.cli.assemble import fitting
from worldroom.engine.api import Capacity


def device(name: str, fits: int) -> Capacity:
    return Capacity("drive", name, 0, fits, 0.0, 0.9, 24_560, 64, 256, 0, 0, 0, 0, 0, 0)


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
    assert fitting(devices) == line
