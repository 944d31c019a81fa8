"""A rate limit in a second of virtual time."""

from worldroom.sessions.rate import Rate


def test_a_burst_then_the_steady_rate() -> None:
    rate = Rate(per_s=2.0, burst=3)
    assert [rate.allows(0.0) for _ in range(5)] == [True, True, True, False, False]
    assert [rate.allows(0.5), rate.allows(0.5)] == [True, False]
    assert [rate.allows(100.0) for _ in range(4)] == [True, True, True, False]
