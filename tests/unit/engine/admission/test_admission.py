"""Admission reserves everything or nothing, and a refusal carries its figures."""

import pytest
from worldroom.engine.admission.rules import Demand, Headroom, choices, refuse
from worldroom.engine.api import LatencyClass, RefusalReason, Shortage, Unit

ROOM = Headroom(share_used=0.0, share_cap=0.9, slots_used=0, slots=4, bytes_used=0, bytes_budget=1000)


def need(share: float, latency_class: LatencyClass = LatencyClass.INTERACTIVE, size: int = 100) -> Demand:
    return Demand(latency_class, chunk_price=share * 0.5, chunk_seconds=0.5, bytes=size)


def room(**changes: float) -> Headroom:
    fields = {name: getattr(ROOM, name) for name in ROOM.__dataclass_fields__}
    return Headroom(**{**fields, **changes})


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


def test_a_refusal_says_in_figures_what_it_says_in_words() -> None:
    no = refuse(need(0.5), room(share_used=0.5))
    assert no is not None and no.figures is not None
    assert (no.figures.needed, no.figures.used, no.figures.unit) == (pytest.approx(0.5), 0.5, Unit.SHARE)
    no = refuse(need(0.1, size=100), room(bytes_used=950))
    assert no is not None
    assert no.figures == Shortage(needed=100, used=950, limit=1000, unit=Unit.BYTES)


def test_cheaper_recipes_are_tried_dearest_first_unless_the_steps_were_asked_for() -> None:
    assert choices(None, default=4, allowed=(1, 2, 4, 8)) == (4, 2, 1)
    assert choices(None, default=1, allowed=(1, 2, 4)) == (1,)
    assert choices(4, default=4, allowed=(1, 2, 4)) == (4,)
