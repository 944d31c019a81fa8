"""A worker that waits for its turn is not a worker that hangs."""

import os

from worldroom.engine.worker.watchdog import ProcStat, hangs, proc_stat_of


def test_half_a_second_of_silence_says_nothing() -> None:
    assert not hangs(0.5, ProcStat(False, 1.0), ProcStat(False, 1.0))


def test_a_stopped_or_blocked_process_hangs() -> None:
    assert hangs(0.7, ProcStat(True, 1.0), ProcStat(False, 1.0))


def test_a_process_that_burns_its_time_without_a_word_hangs() -> None:
    assert hangs(0.7, ProcStat(True, 1.0), ProcStat(True, 1.6))


def test_a_starved_process_is_given_longer_but_not_for_ever() -> None:
    assert not hangs(0.7, ProcStat(True, 1.0), ProcStat(True, 1.1))
    assert not hangs(14.0, ProcStat(True, 1.0), ProcStat(True, 1.4))
    assert hangs(15.0, ProcStat(True, 1.0), ProcStat(True, 1.4))


def test_this_process_runs_and_one_that_is_gone_does_not() -> None:
    assert proc_stat_of(os.getpid()).waits
    assert proc_stat_of(2**22 + 1) == ProcStat(False, 0.0)
