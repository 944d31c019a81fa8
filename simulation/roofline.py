"""Prices from arithmetic: a card's footprint on a device's data sheet. No weights, nothing measured.

    seconds of a pass of n rows = max( n x FLOP / (.4 x peak),  (weights + n x cache) / (.7 x bandwidth),  .5 ms )

The half millisecond is what a host takes to start the kernels of a pass. Not counted: activations on their way through
memory, and what kernels lose at few tokens.
"""

from ..models import catalog
from ..models.contract.footprint import Footprint, StepCost
from ..models.contract.loop import StepKind
from ..models.devices import SHARE_OF_BANDWIDTH, SHARE_OF_PEAK, DataSheet
from .prices import CardPrices, StepPrice

LAUNCH = 0.0005
ENCODE_PER_PIXEL = 1.3e-8
"""Seconds of an encoder thread: x264 and its conversion took 2.2 ms for a picture of `drive`, 512 x 320."""
ROWS = (1, 2, 4, 8, 16, 32)
ORDER = (
    StepKind.ENCODE,
    StepKind.RECACHE,
    StepKind.COMMIT_DENOISE,
    StepKind.DENOISE,
    StepKind.COMMIT,
    StepKind.DECODE,
)


class NothingToCount(LookupError):
    """The card has no footprint: its steps can only be measured."""


def computed(name: str, device: DataSheet) -> CardPrices:
    """Raises `catalog.UnknownCard`, `NothingToCount`, or `WeightsError` of a card that is counted by running it."""
    card, footprint = catalog.card(name), catalog.account(name)
    if footprint is None:
        raise NothingToCount(f"'{name}' has no footprint to compute prices from: give --device a measured price sheet")
    flops, bandwidth = SHARE_OF_PEAK * device.flops(card.recipe.default.precision), 1e9 * device.bandwidth_gbps
    costs = {StepKind(step.name): step for step in footprint.steps}
    prompt = footprint.prompt or StepCost(StepKind.PROMPT_ENCODE, 0, 1)
    kinds = [kind for kind in ORDER if kind in costs for _ in range(costs[kind].passes)]

    def price(kind: StepKind, step: StepCost) -> StepPrice:
        return StepPrice(kind, tuple((n, _seconds(footprint, step, n, flops, bandwidth)) for n in ROWS))

    return CardPrices(
        card=card,
        origin=f"computed for {device.title} ({device.source}) at {SHARE_OF_PEAK:.0%} of its FLOP/s",
        kinds=tuple(kinds),
        steps={kind: price(kind, step) for kind, step in (costs | {StepKind.PROMPT_ENCODE: prompt}).items()},
        encode=ENCODE_PER_PIXEL * card.frame.shown_width * card.frame.shown_height,
        footprint=footprint,
    )


def _seconds(footprint: Footprint, step: StepCost, rows: int, flops: float, bandwidth: float) -> float:
    moved = footprint.read_bytes(step) + rows * step.row_bytes
    return max(rows * step.flop / flops, moved / (SHARE_OF_BANDWIDTH * bandwidth), LAUNCH)
