"""What is told of each frame that was sent, alone or in bundles."""

from collections.abc import Sequence

from ..engine.api import Frame
from ..sessions.audience import FrameInput
from ..sessions.messages import Receipt, Receipts

AT_ONCE = 6
"""A spectator's leave in bundles of so many: each message costs as much as a frame."""


def receipt_of(frame: Frame, given: FrameInput, rtp: int, sent: float) -> Receipt:
    timings = frame.timings
    told_us = timings.wait_us + timings.step_us + timings.decode_us + timings.encode_us
    return Receipt(
        frame=frame.frame,
        chunk=frame.chunk,
        epoch=frame.epoch,
        rtp=rtp,
        prompt_version=frame.prompt_version,
        input_seq=given.seq,
        applied=given.controls,
        hold_us=given.hold_us,
        wait_us=timings.wait_us,
        step_us=timings.step_us,
        decode_us=timings.decode_us,
        encode_us=timings.encode_us,
        pace_us=max(0, round((sent - frame.begun) * 1e6) - told_us),
        preview=frame.preview,
    )


def bundled(receipts: Sequence[Receipt]) -> Receipt | Receipts:
    """One message; there is at least one receipt."""
    return receipts[0] if len(receipts) == 1 else Receipts(tuple(receipts))
