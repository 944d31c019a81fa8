"""Admission reserves everything or nothing, and a refusal carries its figures."""

import pytest
from worldroom.engine.admission import Need, Room, WaitingList, refuse
from worldroom.engine.api import LatencyClass, RefusalReason

ROOM = Room(share_used=0.0, share_cap=0.9, slots_used=0, slots=4, bytes_used=0, bytes_budget=1000)


def need(share: float, latency_class: LatencyClass = LatencyClass.INTERACTIVE, size: int = 100) -> Need:
    return Need(latency_class, chunk_price=share * 0.5, chunk_seconds=0.5, bytes=size)


def room(**changes: float) -> Room:
    fields = {name: getattr(ROOM, name) for name in ROOM.__dataclass_fields__}
    return Room(**{**fields, **changes})


def test_two_that_fit_alone_but_not_together_are_refused_at_the_door() -> None:
    assert refuse(need(0.5), ROOM) is None
    no = refuse(need(0.5), room(share_used=0.5))
    assert no is not None
    assert no.reason is RefusalReason.NO_COMPUTE
    assert no.detail == "a session takes 50% of the device, 50% of 90% is in use"


def test_exactly_full_is_still_admitted() -> None:
    assert refuse(need(0.45), room(share_used=0.45)) is None


def test_an_empty_device_takes_one_session_whatever_it_costs() -> None:
    assert refuse(need(1.7), ROOM) is None
    assert refuse(need(0.1), room(share_used=1.7)) is not None


def test_slots_and_bytes_are_refused_with_their_numbers() -> None:
    no = refuse(need(0.1), room(slots_used=4))
    assert no is not None
    assert (no.reason, no.detail) == (RefusalReason.NO_SLOT, "all 4 places are taken")
    no = refuse(need(0.1, size=100), room(bytes_used=950))
    assert no is not None
    assert no.reason is RefusalReason.NO_MEMORY
    assert no.detail == "a session needs 100 bytes, 50 of 1000 are free"


def test_background_reserves_a_trickle() -> None:
    assert need(0.5, LatencyClass.BACKGROUND).share == pytest.approx(0.05)
    assert refuse(need(0.5, LatencyClass.BACKGROUND), room(share_used=0.8)) is None
    assert refuse(need(0.5, LatencyClass.STREAM), room(share_used=0.8)) is not None


def test_places_in_the_queue_are_kept_and_forgotten() -> None:
    waiting = WaitingList(retry_after=3.0)
    assert waiting.refused("a", now=0.0) == (1, 3.0)
    assert waiting.refused("b", now=1.0) == (2, 6.0)
    assert waiting.refused("a", now=3.0) == (1, 3.0)
    waiting.admitted("a")
    assert waiting.refused("b", now=7.0) == (1, 3.0)
    assert waiting.refused("c", now=60.0) == (1, 3.0)


def test_the_queue_is_bounded() -> None:
    waiting = WaitingList(retry_after=3.0)
    places = [waiting.refused(f"s{n}", now=0.0)[0] for n in range(70)]
    assert places[63:66] == [64, 65, 65]
