"""Rates and rungs: what one viewer's reports change for it, and that they change nothing for others."""

import msgspec
import pytest
from worldroom.engine.api import Frame, Rendered, Rendition, Timings
from worldroom.rtc.media.bitrate import LinkRate, RungChoice, ViewerReport, full_kbps, low_kbps
from worldroom.rtc.media.fanout import BitrateRange, Fanout, Subscription

FINE = ViewerReport(sent_kbps=1800, estimate_kbps=None, lost_share=0.0)
H264, H264_LOW, VP8 = Rendition.H264, Rendition.H264_LOW, Rendition.VP8


@pytest.mark.parametrize(
    ("before", "report", "after"),
    [
        (1000, FINE, 1081),
        (2000, FINE, 2000),
        (2000, ViewerReport(1800, 1700, 0.0), 1445),
        (2000, ViewerReport(1800, 1000, 0.0), 1400),
        (2000, ViewerReport(200, 300, 0.0), 2000),
        (1000, ViewerReport(1000, None, 0.05), 1000),
        (1000, ViewerReport(1000, None, 0.20), 900),
        (60, ViewerReport(1800, 20, 0.0), 50),
    ],
)
def test_a_link_is_what_estimates_and_heavy_loss_say_and_climbs_otherwise(
    before: int, report: ViewerReport, after: int
) -> None:
    link = LinkRate(ceiling=2000)
    if report is not FINE:
        link.learn(report)
        assert link.kbps == 2000 or report.lost_share, "a single second says nothing"
    link.kbps = before
    link.learn(report)
    assert link.kbps == after


def test_what_the_path_takes_is_measured_and_counts_at_once() -> None:
    link = LinkRate(ceiling=2000)
    link.learn(ViewerReport(1800, None, 0.0, path_kbps=700))
    assert link.kbps == 700
    link.learn(ViewerReport(650, None, 0.0, path_kbps=740))
    assert link.kbps == 740
    link.learn(ViewerReport(700, None, 0.0))
    assert link.kbps == 800
    link.limit(30)
    assert link.kbps == 50


def test_a_viewer_that_cannot_follow_for_three_seconds_goes_low_and_tries_again_ever_more_seldom() -> None:
    rung = RungChoice()
    moves: list[tuple[int, bool]] = []
    for now in range(100):
        before = rung.low
        if rung.decide(now, 2000 if before else 800, 2000) is not before:  # on the low rung nothing speaks against it
            moves.append((now, rung.low))
    assert moves == [(3, True), (13, False), (17, True), (37, False), (41, True), (81, False), (85, True)]


def test_a_short_dip_changes_no_rung() -> None:
    rung = RungChoice()
    assert [rung.decide(now, 800 if now in (3, 4) else 2000, 2000) for now in range(10)] == [False] * 10


def test_the_driver_sets_the_full_rate_without_one_half_of_the_others_follow() -> None:
    assert full_kbps(2000, driver=1500, others=[300, 300], floor=400, ceiling=2000) == 1500
    assert full_kbps(2000, driver=100, others=[], floor=400, ceiling=2000) == 400
    assert full_kbps(2000, driver=None, others=[900, 1500, 2000], floor=400, ceiling=2000) == 1500
    assert low_kbps([300, 500], ceiling=2000) == 300
    assert low_kbps([20], ceiling=2000) == 120
    assert low_kbps([1900], ceiling=2000) == 600


class Stream:
    """A fanout whose viewers report what the test says; keeps what encoders are told."""

    def __init__(self) -> None:
        self.told: list[tuple[Rendition, int]] = []
        self.fanout = Fanout(BitrateRange(400, 2000), lambda session, rendition, kbps: self._tell(rendition, kbps))
        self.keys: list[Subscription] = []
        self.number = 0
        self.now = 0.0

    def _tell(self, rendition: Rendition, kbps: int) -> None:
        self.told.append((rendition, kbps))

    def viewer(self, full: Rendition = H264, drives: bool = False, report: ViewerReport = FINE) -> Subscription:
        viewer = Subscription(full, 2000, lambda: report, lambda: drives, lambda: self.keys.append(viewer))
        self.fanout.join(viewer)
        return viewer

    def frame(self, key: bool = False) -> Frame:
        self.number += 1
        times = Timings(1, 2, 3, 4)
        return Frame("s", self.number, 0, 0, self.number * 3000, key, b"\0\0\0\1\x65x", 0, 0, (), 0.0, times)

    def seconds(self, count: int) -> None:
        for _ in range(count):
            self.now += 1
            self.fanout.frame(self.frame())
            self.fanout.settle_bitrate(self.now, 1.0)


SLOW = ViewerReport(sent_kbps=1800, estimate_kbps=500, lost_share=0.3)


def test_a_slow_viewer_gets_the_low_rung_and_the_driver_keeps_the_full_rate() -> None:
    stream = Stream()
    driver, slow = stream.viewer(drives=True), stream.viewer(report=SLOW)
    stream.seconds(6)
    assert (driver.wanted, slow.wanted, slow.current) == (H264, H264_LOW, H264)
    assert stream.keys == [slow], "it waits for the low rung's key frame"
    assert stream.fanout.kbps == 2000
    assert {rendition for rendition, _ in stream.told} == {H264, H264_LOW}
    assert not slow.takes(H264_LOW, key=False) and slow.takes(H264, key=False)
    assert slow.takes(H264_LOW, key=True) and not slow.takes(H264, key=True)


def test_what_is_made_on_demand_is_asked_for_every_second_while_somebody_needs_it() -> None:
    stream = Stream()
    viewer = stream.viewer(full=VP8)
    stream.seconds(3)
    assert [rendition for rendition, _ in stream.told if rendition is VP8] == [VP8] * 3
    stream.fanout.leave(viewer)
    stream.viewer()
    stream.seconds(3)
    assert [rendition for rendition, _ in stream.told if rendition is VP8] == [VP8] * 3


def test_a_driver_whose_path_fills_up_gets_less_before_the_second_is_over() -> None:
    stream = Stream()
    driver, other = stream.viewer(drives=True), stream.viewer()
    stream.seconds(1)
    stream.told.clear()
    stream.fanout.overfull(other, 600)
    assert stream.told == []
    stream.fanout.overfull(driver, 900)
    assert stream.told == [(H264, 900)] and stream.keys == []


def test_a_rendition_carries_what_its_frame_says_and_is_packetized_once() -> None:
    stream = Stream()
    frame = stream.frame()
    rendered = Rendered("s", VP8, msgspec.structs.replace(frame, pts=99, key=True, data=bytes(2000)))
    packed = stream.fanout.rendered(rendered)
    assert packed is stream.fanout.rendered(rendered)
    assert packed.frame is rendered.frame
    assert [(len(payload), payload[0]) for payload in packed.payloads] == [(1300, 0x10), (702, 0x00)]
