"""Where a room goes: where it fits, then where it is least late, then where most of the device is free."""

from dataclasses import replace

import pytest
from worldroom.engine import api
from worldroom.engine.worker.placement import Vacancy, vacancy


def device(share: float = 0.0, sessions: int = 0, price_us: int = 100, asleep: int = 0, most: int = 4) -> api.Capacity:
    return api.Capacity(
        "drive", "cuda:0", sessions, most, share, 0.9, price_us, 0, 0, 0, 0, 0, 0, 0, 0, asleep=asleep, chunk_us=1000
    )


def offered(*entries: api.Capacity, homes: int = 0, late_us: int = 0) -> Vacancy:
    info = api.SessionInfo("a", "drive", api.LatencyClass.INTERACTIVE, "waiting", 0, 0, 0, late_us, 0, 0, 0)
    made = vacancy("drive", True, entries, (info,), {"drive": homes})
    assert made is not None
    return made


def best(*vacancies: Vacancy) -> int:
    return min(range(len(vacancies)), key=lambda index: vacancies[index].rank)


def test_a_device_without_the_card_offers_nothing() -> None:
    assert vacancy("toy", True, (device(),), (), {}) is None


def test_the_order_of_reasons() -> None:
    free, busy = offered(device(share=0.2)), offered(device(share=0.5))
    assert best(busy, free) == 1
    late = offered(device(share=0.2), late_us=9000)
    assert best(late, busy) == 1, "lateness counts before what is free"
    slow = offered(device(price_us=30_000))
    assert best(slow, busy) == 1, "a device on which a chunk takes longer than it lasts is late even empty"
    full = offered(device(share=0.85, sessions=3))
    assert not full.fits
    assert best(full, late) == 1
    assert best(replace(free, ready=False), full) == 1


@pytest.mark.parametrize(
    ("entry", "homes", "fits"),
    [
        (device(sessions=4), 4, False),
        (device(sessions=4, asleep=1), 4, True),
        (device(sessions=2), 4, False),  # two were sent there since it told its figures
        (device(share=0.75, sessions=1), 1, True),
        (device(share=0.75, sessions=1), 2, False),
        (device(price_us=3000), 0, True),  # an empty device takes one whatever it costs
    ],
)
def test_who_was_sent_there_counts_before_the_device_says_so(entry: api.Capacity, homes: int, fits: bool) -> None:
    assert offered(entry, homes=homes).fits is fits
