"""Encoded frames as the engine hands them out, in every rendition."""

from .message import Message
from .rendition import Rendition


class Timings(Message, frozen=True):
    """Where one chunk's time went. wait: begin to first step; step: all denoise/commit passes; the rest as named.

    encode is a frame's own, so it is 0 in `ChunkDone`.
    """

    wait_us: int
    step_us: int
    decode_us: int
    encode_us: int


class Frame(Message, frozen=True):
    """One encoded frame, handed out at its playout time, in the rendition H264.
    `pts` in 90 kHz ticks of the playout clock; `data` Annex-B H.264; `begun` when its chunk's conditions were sampled.
    `preview`: it shows what its chunk will be, before that is done. `controls`: of all players, one after another.
    `input_seq`: of who drives first.
    """

    session: str
    frame: int
    chunk: int
    epoch: int
    pts: int
    key: bool
    data: bytes
    input_seq: int
    prompt_version: int
    controls: tuple[float, ...]
    begun: float
    timings: Timings
    preview: bool = False


class Rendered(Message, frozen=True):
    """A frame that was shown, in another rendition than H264: its own are `data`, `key`, `pts` and `timings.encode_us`.
    It comes again, at a later time, when a key frame is wanted of a picture that stands still.
    """

    session: str
    rendition: Rendition
    frame: Frame
