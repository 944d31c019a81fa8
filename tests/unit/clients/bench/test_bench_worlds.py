"""Jitter of a world's frames from arrivals and timestamps."""

from worldroom.clients.bench.worlds import WRAP, jitter


def test_frames_that_arrive_as_they_are_stamped_have_no_jitter() -> None:
    assert jitter([(n * 0.05, n * 4500) for n in range(10)], fps=20) < 1e-9


def test_a_late_frame_counts_twice_and_a_moved_clock_counts_nothing() -> None:
    on_time = [(0.0, 0), (0.05, 4500), (0.1, 9000), (0.15, 13500), (0.2, 18000)]
    late = [*on_time[:2], (0.11, 9000), *on_time[3:]]
    assert round(jitter(late, fps=20), 6) == round((0.01 + 0.01) / 4 / 0.05, 6)
    moved = [*on_time[:3], (0.45, 40500), (0.5, 45000)]
    assert round(jitter(moved, fps=20), 6) == 0.0


def test_a_burst_of_a_whole_chunk_is_far_beyond_the_bound() -> None:
    burst = [(0.75 * (n // 12), n * 5625) for n in range(48)]
    assert jitter(burst, fps=16) > 0.9


def test_timestamps_wrap() -> None:
    assert jitter([(0.0, WRAP - 4500), (0.05, 0), (0.1, 4500)], fps=20) < 1e-9
