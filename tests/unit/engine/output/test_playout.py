"""The playout clock: even intervals, no catching up, presentation times from the clock."""

import pytest
from worldroom.engine.card import Allowance, Lead
from worldroom.engine.output.playout import Playout
from worldroom.engine.session.pacing import MARGIN_HIGH, MARGIN_LOW, margin_after


def test_a_punctual_chunk_shows_at_its_deadline_and_frames_follow_one_by_one() -> None:
    clock = Playout(fps=24, per_chunk=3, start=10.0)
    assert clock.place(ready=9.99) == (10.0, pytest.approx(10 + 1 / 24), pytest.approx(10 + 2 / 24))
    assert clock.next == pytest.approx(10 + 3 / 24)


def test_a_late_chunk_moves_the_clock_and_nothing_is_caught_up() -> None:
    clock = Playout(fps=10, per_chunk=1, start=10.0)
    assert clock.place(ready=10.05) == (10.05,)
    assert clock.place(ready=10.10) == (pytest.approx(10.15),)
    assert clock.next == pytest.approx(10.25)


def test_a_little_lateness_is_absorbed() -> None:
    clock = Playout(fps=10, per_chunk=1, start=10.0)
    assert clock.place(ready=10.008) == (10.0,)
    assert clock.next == pytest.approx(10.102)


def test_conditions_are_asked_just_in_time_and_never_before_the_chunk_in_front_leaves() -> None:
    clock = Playout(fps=10, per_chunk=2, start=10.0)
    assert clock.due(lead=0.03, encode=0.0) == pytest.approx(9.97)
    assert clock.due(lead=5.0, encode=0.0) == pytest.approx(9.8)
    assert clock.due(lead=5.0, encode=0.002) == pytest.approx(9.798)
    assert clock.due(lead=0.03, encode=0.0, ahead=True) == pytest.approx(9.8)


def test_conditions_that_come_too_late_move_the_clock() -> None:
    clock = Playout(fps=10, per_chunk=1, start=10.0)
    clock.begun(delay=0.009)
    assert clock.next == 10.0
    clock.begun(delay=0.5)
    assert clock.next == 10.5


def test_after_a_pause_time_goes_on_from_now() -> None:
    clock = Playout(fps=10, per_chunk=1, start=10.0)
    clock.place(ready=10.0)
    clock.restart(now=40.0, lead=0.02)
    assert clock.place(ready=40.01) == (40.02,)
    assert clock.next == pytest.approx(40.12)


def test_a_quick_pause_does_not_squeeze_two_frames_together() -> None:
    clock = Playout(fps=10, per_chunk=1, start=10.0)
    clock.place(ready=10.0)
    clock.restart(now=10.01, lead=0.02)
    assert clock.next == pytest.approx(10.1)


def test_after_dropping_frames_the_next_one_follows_what_was_really_shown() -> None:
    clock = Playout(fps=10, per_chunk=12, start=10.0)
    clock.place(ready=10.0)
    clock.restart(now=10.25, lead=0.02, last_shown=10.2)
    assert clock.next == pytest.approx(10.3)


def test_presentation_times_count_from_the_session_start() -> None:
    clock = Playout(fps=24, per_chunk=1, start=100.0)
    assert [clock.pts(at) for at in (100.0, 100.0 + 1 / 24, 101.0)] == [0, 3750, 90000]


def test_the_margin_stays_between_its_bounds() -> None:
    margin = 0.001
    for _ in range(10):
        margin = margin_after(margin, late=True)
    assert margin == MARGIN_HIGH
    for _ in range(1000):
        margin = margin_after(margin, late=False)
    assert margin == MARGIN_LOW


def test_the_lead_is_one_quantile_of_the_whole_way_once_enough_is_known() -> None:
    lead = Lead(share=0.9, window=20, enough=5)
    for _ in range(4):
        lead.observe(0.010)
    assert lead.value(unknown=0.5) == 0.5
    for number in range(20):
        lead.observe(0.010 + number / 1000)
    assert round(lead.value(unknown=0.5), 6) == 0.027, "two of the last twenty took longer"


def test_what_others_take_is_learnt_from_chunks_that_waited_and_were_late() -> None:
    allowance = Allowance(most=0.040)
    allowance.finished(late=0.010, waited=0.004)
    assert allowance.value == 0.004
    allowance.finished(late=0.001, waited=0.020)
    assert allowance.value == pytest.approx(0.005)
    allowance.finished(late=-0.010, waited=0.003)
    assert allowance.value == pytest.approx(0.0049975)
    allowance.finished(late=0.100, waited=0.100)
    assert allowance.value == 0.040


def test_who_has_the_device_alone_keeps_nothing_for_others_and_soon_forgets_them() -> None:
    alone = Allowance(most=0.040)
    alone.finished(late=0.010, waited=0.0)  # late through nobody's fault
    assert alone.value == 0.0
    once = Allowance(most=0.040, value=0.020)
    for _ in range(30 * 24):  # half a minute
        once.finished(late=-0.010, waited=0.0)
    assert once.value < 0.010


def test_the_chunk_behind_one_without_pictures_is_due_when_that_one_would_be_shown() -> None:
    playout = Playout(fps=10, per_chunk=1, start=1.0)
    assert playout.due(lead=0.15, encode=0.01) == pytest.approx(0.89)
    playout.pending = True
    assert playout.coming == pytest.approx(1.1)
    assert playout.due(lead=0.15, encode=0.01) == pytest.approx(0.95)
    playout.place(ready=1.0)
    assert not playout.pending and playout.coming == pytest.approx(1.1)
