"""What a session's journal holds: one typed event for everything that happened to a world.

Together they are enough to replay the world bit for bit (`replay.py`): seed, card, weights and steps in
`SessionOpened`, every chunk's conditions in `ChunkBegun`, texts in `PromptAsked`, restarts in `EpochStarted`.
"""

import msgspec

from ...engine.api import JOURNALS_SINCE, Conditions, FirstFrames, Timings
from ..messages import KeyEdge, Role, Transition, WorldState
from ..states import Cause


class Event(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower, forbid_unknown_fields=True):
    """What the stream of a session holds, as JSON with a `type` field."""


class SessionOpened(Event, frozen=True, tag="opened"):
    """`seed` is the first epoch's; `weights` a digest of the weight files; `mode` and `contract` as in `api.Opened`."""

    room: str
    card: str
    version: str
    weights: str
    steps: int
    precision: str
    seed: int
    branch: int
    mode: str = ""
    contract: int = JOURNALS_SINCE


class InputReceived(Event, frozen=True, omit_defaults=True):
    """An input message of the driver that held something new."""

    participant: str
    seq: int
    held: tuple[str, ...] = ()
    edges: tuple[KeyEdge, ...] = ()
    pointer: tuple[float, float] = (0.0, 0.0)
    levels: tuple[tuple[int, float], ...] = ()


class ChunkBegun(Event, frozen=True):
    chunk: int
    conditions: Conditions


class ChunkCommitted(Event, frozen=True, tag="chunkdone"):
    chunk: int
    epoch: int
    digest: str
    late_us: int
    timings: Timings


class ChunkDropped(Event, frozen=True, tag="chunkcancelled"):
    chunk: int
    epoch: int


class PromptAsked(Event, frozen=True):
    participant: str
    number: int
    text: str
    transition: Transition
    frames: int


class PromptReady(Event, frozen=True, tag="promptencoded"):
    """The version's embedding is there; it steers from the next chunk on."""

    number: int
    key: str


class EpochStarted(Event, frozen=True, omit_defaults=True):
    """The world was started anew with `seed`, and from `first_frames` where pictures were given."""

    epoch: int
    seed: int
    participant: str
    first_frames: FirstFrames | None = msgspec.field(default=None, name="opening")


class StateMoved(Event, frozen=True):
    before: WorldState
    after: WorldState
    cause: Cause


class FeedbackGiven(Event, frozen=True):
    participant: str
    chunk: int
    value: int


class DriverChanged(Event, frozen=True):
    """None = nobody holds the wheel."""

    before: str | None
    after: str | None


class Joined(Event, frozen=True):
    """`resumed` = the same participant came back with its token."""

    participant: str
    role: Role
    resumed: bool


class Left(Event, frozen=True):
    """`gone` False = the connection is lost but the lease keeps the place; True = the place is free."""

    participant: str
    gone: bool


class Faulted(Event, frozen=True):
    code: str
    detail: str
    fatal: bool


class SessionClosed(Event, frozen=True, tag="closed"):
    """The last event of a session."""

    reason: str


JournalEvent = (
    SessionOpened
    | InputReceived
    | ChunkBegun
    | ChunkCommitted
    | ChunkDropped
    | PromptAsked
    | PromptReady
    | EpochStarted
    | StateMoved
    | FeedbackGiven
    | DriverChanged
    | Joined
    | Left
    | Faulted
    | SessionClosed
)
