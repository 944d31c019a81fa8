"""From the receivers' estimates to one encoder's target. Pure: numbers in, a number out.

A receiver's estimate is bounded by what it is sent (about 1.5 times), so only an estimate below what is being sent, or
loss, brings the target down; otherwise it climbs back step by step.
"""

from dataclasses import dataclass

SHARE = 0.85
CLIMB = 1.08
LOSS_MAX = 0.05


@dataclass(frozen=True, slots=True)
class ViewerEstimate:
    """One viewer's report: `kbps` None = it never sent one; `lost_share` of the packets since its last report."""

    kbps: int | None
    lost_share: float


def next_target(current: int, sent_kbps: int, viewers: list[ViewerEstimate], floor: int, ceiling: int) -> int:
    """The encoder's next target in kbit/s, within [floor, ceiling]; called once a second."""
    tight = [estimate.kbps for estimate in viewers if estimate.kbps is not None and estimate.kbps < sent_kbps]
    lossy = any(estimate.lost_share > LOSS_MAX for estimate in viewers)
    if tight:
        wanted = min(current, int(min(tight) * SHARE))
    elif lossy:
        wanted = int(min(current, sent_kbps or current) * SHARE)
    else:
        wanted = int(current * CLIMB) + 1
    return max(floor, min(ceiling, wanted))
