"""What each viewer's network takes, and from that: who gets the low rung, and the rate of each rung's encoder.

    reports, once a second -> LinkRate -> RungChoice          of each viewer
                                       -> full_kbps, low_kbps  of each encoder

Pure: numbers in, numbers out. The driver's network sets the full rung's rate; who cannot follow watches the low rung,
so that a slow viewer costs nobody else anything. Where a receiver says when each packet arrived, its path is known
(`rtc/media/path_rate.py`). Elsewhere there is its own estimate, which is bounded by what it is sent (about 1.5 times):
only one below what is being sent says something, and whether a better rung would fit can only be tried.
"""

from dataclasses import dataclass
from statistics import median

SHARE = 0.85
CLIMB = 1.08
FALL = 0.7
"""Of what was thought before, at most in one second: a stream of few bits makes poor estimates."""
LOSS_BAD = 0.10
"""Above it the network is overfull; below it packets may be lost at random, which a lower rate does not mend."""
LOSS_FINE = 0.02
LINK_MIN = 50
TELLING_KBPS = 200
"""A receiver cannot estimate from less than that."""
FOLLOWS = 0.9
"""Of the full rate: a network that takes less does not follow."""
PATIENCE = 3.0
TRY_FIRST, TRY_MAX = 10.0, 120.0
TRIED = 15.0
"""Seconds after which going up has worked."""
LOW_FLOOR, LOW_SHARE = 120, 0.3


@dataclass(frozen=True, slots=True)
class ViewerReport:
    """Of the last second: what was sent, the receiver's estimate (None = it says nothing), the share that was lost;
    `path_kbps`: what the path takes by the sender's own account (`rtc/media/path_rate.py`), None = nothing is known."""

    sent_kbps: int
    estimate_kbps: int | None
    lost_share: float
    path_kbps: int | None = None


class LinkRate:
    """What one viewer's network takes in kbit/s, as far as is known; `ceiling` = nothing speaks against it."""

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._was_bad = False
        self.kbps = ceiling

    def learn(self, report: ViewerReport) -> None:
        """A single bad second is none: a busy receiver takes its own pauses for the network's."""
        estimate, sent, lost = report.estimate_kbps, report.sent_kbps, report.lost_share
        low = estimate is not None and estimate < sent and sent >= TELLING_KBPS
        bad, self._was_bad = self._was_bad, lost > LOSS_BAD or low
        if self._was_bad:
            carried = sent * (1 - lost / 2) if lost > LOSS_BAD else (estimate or 0) * SHARE
            wanted = max(min(self.kbps, carried), self.kbps * FALL) if bad else self.kbps
        elif lost > LOSS_FINE:
            wanted = self.kbps
        else:
            wanted = self.kbps * CLIMB + 1
        self.kbps = max(LINK_MIN, min(self._ceiling, int(wanted)))
        if report.path_kbps is not None:
            self.limit(report.path_kbps)

    def limit(self, path_kbps: int) -> None:
        """Its path takes no more: that is measured, and counts at once."""
        self.kbps = max(LINK_MIN, min(self.kbps, path_kbps))


class RungChoice:
    """Full or low for one viewer: down after three seconds that did not follow, up by trying, ever more seldom."""

    def __init__(self) -> None:
        self.low = False
        self._behind_since: float | None = None
        self._moved_at = float("-inf")
        self._wait = TRY_FIRST

    def decide(self, now: float, link_kbps: int, full_kbps: int) -> bool:
        """Whether the low rung suits; `full_kbps`: the full rung's rate."""
        follows = link_kbps >= FOLLOWS * full_kbps
        if self.low:
            if follows and now - self._moved_at >= self._wait:
                self._move(now, low=False)
        elif follows:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since >= PATIENCE:
            failed = now - self._moved_at < TRIED
            self._wait = min(2 * self._wait, TRY_MAX) if failed else TRY_FIRST
            self._move(now, low=True)
        return self.low

    def _move(self, now: float, low: bool) -> None:
        self.low, self._moved_at, self._behind_since = low, now, None


def full_kbps(current: int, driver: int | None, others: list[int], floor: int, ceiling: int) -> int:
    """The full rung's next rate: what the driver's network takes, without a driver what half of the others take."""
    if driver is not None:
        wanted = driver
    elif others:
        wanted = int(median(others))
    else:
        wanted = current
    return max(floor, min(ceiling, wanted))


def low_kbps(viewers: list[int], ceiling: int) -> int:
    """The low rung's rate: what the slowest of those who watch it takes, between bounds that suit a quarter of the
    pixels."""
    most = int(ceiling * LOW_SHARE)
    return max(LOW_FLOOR, min([most, *viewers]))
