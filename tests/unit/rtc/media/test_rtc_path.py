"""A viewer's path: transport-wide feedback as bytes, and what a sender learns of a link from it."""

import heapq
import json
import random
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from worldroom.clients.bench.network import PathSpec, ShapedPath
from worldroom.rtc.media.delay_trend import DelayTrend, Load
from worldroom.rtc.media.path_rate import PathRate
from worldroom.rtc.media.transport_feedback import Arrivals, BadFeedback, feedback_apart, read_feedback

RECORDED = Path(__file__).with_name("chromium_feedback.json")
RECEIVER_REPORT = struct.pack("!BBHLLLLLLL", 0x81, 201, 7, 1, 2, 0, 3, 4, 5, 6)


def body(first: int, count: int, reference: int, rest: bytes) -> bytes:
    return struct.pack("!LLHHL", 1, 2, first, count, reference << 8) + rest


def test_a_run_and_small_deltas() -> None:
    read = read_feedback(body(65534, 3, 2, bytes.fromhex("2003 04 08 00")))
    assert read == Arrivals(65534, (0.129, 0.131, 0.131))


def test_statuses_of_one_bit_and_of_two_with_a_delta_backwards() -> None:
    assert read_feedback(body(5, 4, 0, bytes.fromhex("a800 04 04"))).times == (0.001, None, 0.002, None)
    two_bits = 0b11_01_00_10_00_00_00_00
    assert read_feedback(body(5, 3, 0, struct.pack("!HBh", two_bits, 8, -4))).times == (0.002, None, 0.001)


def test_a_reference_time_may_be_negative() -> None:
    assert read_feedback(body(0, 1, 0xFFFFFF, bytes.fromhex("2001 00"))).times == (-0.064,)


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        body(0, 1, 0, b""),
        body(0, 1, 0, bytes.fromhex("2001")),
        body(0, 1, 0, bytes.fromhex("4001 00")),
        body(0, 1, 0, bytes.fromhex("6001 0000")),
        body(0, 65535, 0, bytes.fromhex("1fff") * 9),
    ],
)
def test_what_is_no_feedback(wrong: bytes) -> None:
    with pytest.raises(BadFeedback):
        read_feedback(wrong)


def test_feedback_is_taken_out_of_a_compound_with_its_padding() -> None:
    inner = body(7, 1, 0, bytes.fromhex("2001 04"))
    padded = struct.pack("!BBH", 0x80 | 0x20 | 15, 205, 5) + inner + b"\x01"
    assert feedback_apart(RECEIVER_REPORT + padded + RECEIVER_REPORT) == ([inner], RECEIVER_REPORT * 2)
    nack = struct.pack("!BBHLLHH", 0x81, 205, 3, 1, 2, 9, 0)
    assert feedback_apart(nack) == ([], nack)
    assert feedback_apart(padded[:-4]) == ([], padded[:-4]), "what is cut short is left to who reads it"


def test_delays_that_stay_grow_and_shrink() -> None:
    trend, seen = DelayTrend(), list[Load]()
    queue = 0.0
    for frame in range(120):
        queue += 0.004 if 40 <= frame < 70 else -0.004 if 80 <= frame < 110 else 0.0
        for packet in range(3):
            trend.add(frame / 24 + packet * 1e-4, 1000 + frame / 24 + queue + packet * 2e-4)
        seen.append(trend.load)
    assert set(seen[:40]) == {Load.NORMAL}
    assert Load.OVER in seen[40:55] and Load.UNDER not in seen[:80]
    assert Load.UNDER in seen[80:112]


def test_what_chromium_said_while_its_link_became_narrow() -> None:
    recorded = json.loads(RECORDED.read_text())
    rate, fell = PathRate(), list[float]()
    for at, what in heapq.merge(recorded["sent"], recorded["feedback"], key=lambda event: event[0]):
        if isinstance(what, int):
            rate.depart(at, what)
        elif rate.learn(read_feedback(bytes.fromhex(what)), at):
            fell.append(at)
    assert [round(at, 1) for at in fell] == [18.0, 18.9]
    assert rate.kbps is not None and 350 < rate.kbps < 600


@dataclass
class Link:
    """A sender of frames at the rate that it is told, and the receiver's feedback ten times a second."""

    kbps: int
    seed: int = 0
    jitter_ms: float = 0.0
    loss: float = 0.0
    ceiling: int = 2500

    def __post_init__(self) -> None:
        self.path = ShapedPath(PathSpec(20, self.jitter_ms, self.loss, self.kbps), random.Random(self.seed))
        self.rate = PathRate()
        self.now, self.frame, self.fell = 100.0, 0, 0
        self.arrived: dict[int, float | None] = {}
        self.queue_ms: list[float] = []

    @property
    def target(self) -> float:
        return min(self.ceiling, self.rate.kbps or self.ceiling)

    def run(self, seconds: float) -> "Link":
        for _ in range(round(seconds * 24)):
            self.now += 1 / 24
            self.frame += 1
            left = self.target * 1000 / 8 / 24
            while left > 0:
                size = int(min(1200, left + 1))
                left -= size
                number = self.rate.depart(self.now, size)
                self.arrived[number] = at = self.path.arrival(self.now, size)
                self.queue_ms.append(1000 * ((at or self.now) - self.now) - 20)
            if self.frame % 3 == 0:
                self._report()
        return self

    def _report(self) -> None:
        """Up to the last packet that has arrived; a packet before it that has not is lost."""
        here = [number for number, at in self.arrived.items() if at is not None and at <= self.now - 0.02]
        if not here:
            return
        first, last = next(iter(self.arrived)), here[-1]
        times: list[float | None] = []
        for number in [number for number in self.arrived if (number - first) & 0xFFFF <= (last - first) & 0xFFFF]:
            at = self.arrived.pop(number)
            times.append(at if number in here else None)
        self.fell += self.rate.learn(Arrivals(first, tuple(times)), self.now)


@pytest.mark.parametrize("kbps", [500, 1000, 1800])
def test_a_link_that_is_too_narrow_is_found_within_two_seconds_and_used(kbps: int) -> None:
    link = Link(kbps).run(2)
    assert link.fell >= 1 and link.target < kbps
    link.run(20)
    link.queue_ms.clear()
    link.run(20)
    assert 0.7 * kbps < link.target <= 1.1 * kbps
    assert sorted(link.queue_ms)[len(link.queue_ms) // 2] < 100


def test_a_link_that_is_wide_enough_costs_nothing_even_with_jitter_and_loss() -> None:
    for seed in range(5):
        assert Link(5000, seed, jitter_ms=10, loss=0.02).run(60).fell == 0


def test_a_link_that_gets_wider_is_used_again() -> None:
    link = Link(800).run(10)
    narrow = link.target
    link.path.spec = PathSpec(20, 0, 0, 4000)
    assert narrow < 900 < link.run(30).target


def test_a_stream_of_few_bits_says_nothing() -> None:
    link = Link(50, ceiling=100).run(10)
    assert link.rate.kbps is None


def test_numbers_wrap_and_a_packet_counts_once() -> None:
    rate = PathRate()
    numbers = [rate.depart(float(n), 100) for n in range(65_540)]
    assert numbers[65_534:] == [65_534, 65_535, 0, 1, 2, 3]
    late = Arrivals(65_534, (1.0, 1.1, 1.2))
    assert rate.learn(late, 2.0) is False and rate.learn(late, 2.1) is False
