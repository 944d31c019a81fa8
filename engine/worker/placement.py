"""Where a room goes: to the device where it fits with the least lateness. Pure: figures in, an order out.

lateness    what a chunk takes beyond what it lasts, and how late those are that play there now
share       of the device's time, with this room in
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import api


@dataclass(frozen=True, slots=True)
class Vacancy:
    """One device for one room. `fits`: beside all that is in, by the last figures it told.
    `on_device`: its card's weights need not come first."""

    ready: bool
    fits: bool
    on_device: bool
    late_us: float
    share: float
    sessions: int

    @property
    def rank(self) -> tuple[bool, bool, bool, int, int, int]:
        """The smallest is taken. Milliseconds and hundredths of a device: what is below is chance."""
        late, share = round(self.late_us / 1000), round(100 * self.share)
        return not self.ready, not self.fits, not self.on_device, late, share, self.sessions


def vacancy(
    card: str,
    ready: bool,
    capacity: Sequence[api.Capacity],
    sessions: Sequence[api.SessionInfo],
    homes: Mapping[str, int],
) -> Vacancy | None:
    """What a worker offers to one more session of a card; None = it does not serve that. `homes`: sessions by card
    that were sent there, of which its figures may not know yet.
    """
    entry = next((entry for entry in capacity if entry.card == card), None)
    if entry is None:
        return None
    pending = {each.card: max(0, homes.get(each.card, 0) - each.sessions) for each in capacity}
    share = sum(each.share_used + pending[each.card] * each.share(each.price_us) for each in capacity)
    awake = entry.sessions - entry.asleep + pending[card]
    after = share + entry.share(entry.price_us)
    playing = [info for info in sessions if not info.asleep]
    measured = sum(max(0, info.late_us) for info in playing) / max(1, len(playing))
    return Vacancy(
        ready=ready,
        on_device=entry.on_device,
        fits=not entry.in_the_way and awake < entry.sessions_max and (share == 0.0 or after <= entry.share_max + 1e-9),
        late_us=max(0, entry.price_us - entry.chunk_us) + measured,
        share=after,
        sessions=sum(each.sessions + pending[each.card] for each in capacity),
    )
