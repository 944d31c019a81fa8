"""The network of the bench: what is lost, late and out of order is what was asked for."""

import itertools
import random

from worldroom.clients.bench.network import PathSpec, ShapedPath


def arrivals(spec: PathSpec, count: int, every_s: float = 0.01, size: int = 1000) -> list[float | None]:
    path = ShapedPath(spec, random.Random(3))
    return [path.arrival(number * every_s, size) for number in range(count)]


def test_as_it_is_everything_arrives_at_once() -> None:
    assert arrivals(PathSpec(), 3) == [0.0, 0.01, 0.02]


def test_loss_is_the_share_that_was_asked_for_and_delay_is_added() -> None:
    arrived = arrivals(PathSpec(delay_ms=50, loss=0.05), 10_000)
    lost = arrived.count(None)
    assert 430 < lost < 570
    assert all(at is None or abs(at - 0.01 * number - 0.05) < 1e-9 for number, at in enumerate(arrived))


def test_jitter_puts_datagrams_out_of_order() -> None:
    arrived = [at for at in arrivals(PathSpec(delay_ms=20, jitter_ms=30), 1000) if at is not None]
    assert sum(later < earlier for earlier, later in itertools.pairwise(arrived)) > 200
    assert max(at - 0.01 * number for number, at in enumerate(arrived)) < 0.0501


def test_a_bandwidth_makes_a_queue_that_is_bounded() -> None:
    # 1000 bytes every 10 ms are 800 kbit/s; 400 go through, so half of them wait for 300 ms or are lost.
    arrived = arrivals(PathSpec(kbps=400), 1000)
    lost = arrived.count(None)
    assert 450 < lost < 520
    waits = [at - 0.01 * number for number, at in enumerate(arrived) if at is not None]
    assert 0.29 < max(waits) < 0.33
