"""Which world gives way: by card, by device, and by whether it is enough."""

import pytest
from worldroom.engine import api
from worldroom.sessions.rooms.unattended import Fleet

PRICES = {"small": 100, "large": 400}
"""Thousandths of a chunk."""


def entry(card: str, device: str, sessions: int, places: int = 8, asleep: int = 0) -> api.Capacity:
    share = (sessions - asleep) * PRICES[card] / 1000
    return api.Capacity(
        card, device, sessions, places, share, 0.9, PRICES[card], 1, *[0] * 7, asleep=asleep, chunk_us=1000
    )


def world(name: str, card: str, device: str = "gpu0", state: str = "paused") -> api.SessionInfo:
    kind = api.LatencyClass.INTERACTIVE
    return api.SessionInfo(name, card, kind, state, 0, 0, 0, 0, PRICES[card], 0, 0, device)


TWO_DEVICES = (entry("small", "gpu0", 9, 9), entry("large", "gpu1", 2))


@pytest.mark.parametrize(
    ("capacity", "sessions", "card", "goes"),
    [
        ((entry("small", "gpu0", 8),), [world("a", "small"), world("b", "small")], "small", "a"),
        (TWO_DEVICES, [world("a", "large", "gpu1"), world("b", "small")], "small", "b"),
        (TWO_DEVICES, [world("a", "small")], "large", None),
        ((entry("small", "gpu0", 1, 1), entry("large", "gpu0", 1)), [world("a", "large")], "small", None),
        (
            (entry("small", "gpu0", 1), entry("large", "gpu0", 2)),
            [world("a", "small"), world("b", "large")],
            "large",
            "b",
        ),
        ((entry("small", "gpu0", 6),), [world("a", "small", state=api.ASLEEP)], "small", None),
        ((entry("small", "gpu0", 8), entry("large", "gpu0", 0)), [world(n, "small") for n in "abc"], "large", "a"),
        ((entry("small", "gpu0", 8), entry("large", "gpu0", 0)), [world(n, "small") for n in "ab"], "large", None),
    ],
    ids=[
        "the first that went",
        "on a device that serves the card",
        "no device of it serves the card",
        "time is of no use where a place is missing",
        "the one that is enough by itself",
        "who sleeps holds nothing",
        "three small ones together are enough",
        "two are not",
    ],
)
def test_what_gives_way(
    capacity: tuple[api.Capacity, ...], sessions: list[api.SessionInfo], card: str, goes: str | None
) -> None:
    assert Fleet(capacity, sessions).gives_way(card, [info.session for info in sessions]) == goes
