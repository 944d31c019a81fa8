"""A worker that waits for its turn is not a worker that hangs."""

import os

from worldroom.engine.process.pulse import Sign, hangs, sign_of


def test_half_a_second_of_silence_says_nothing() -> None:
    assert not hangs(0.5, Sign(False, 1.0), Sign(False, 1.0))


def test_a_stopped_or_blocked_process_hangs() -> None:
    assert hangs(0.7, Sign(True, 1.0), Sign(False, 1.0))


def test_a_process_that_burns_its_time_without_a_word_hangs() -> None:
    assert hangs(0.7, Sign(True, 1.0), Sign(True, 1.6))


def test_a_starved_process_is_given_longer_but_not_for_ever() -> None:
    assert not hangs(0.7, Sign(True, 1.0), Sign(True, 1.1))
    assert not hangs(14.0, Sign(True, 1.0), Sign(True, 1.4))
    assert hangs(15.0, Sign(True, 1.0), Sign(True, 1.4))


def test_this_process_runs_and_one_that_is_gone_does_not() -> None:
    assert sign_of(os.getpid()).waits
    assert sign_of(2**22 + 1) == Sign(False, 0.0)
