"""What a session's journal holds: one typed event for everything that happened to a world, named `group.what`.

Together they are enough to replay the world bit for bit (`replay.py`): seed, card, weights and steps in
`SessionOpened`, every chunk's conditions in `ChunkBegun`, texts in `PromptAsked`, restarts in `EpochStarted`.
"""

import msgspec

from ...engine.api import JOURNALS_SINCE, AdapterShare, Conditions, FirstFrames, Timings
from ..messages import AdapterChoice, KeyEdge, Role, Transition, WorldState
from ..states import Cause
from .event_parts import BranchRecord as BranchRecord
from .event_parts import DriverInput as DriverInput
from .event_parts import MixedPart as MixedPart
from .event_parts import Origin as Origin
from .event_parts import Verdict as Verdict


class Event(msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True):
    """What an entry of the journal says, as JSON with a `type` field."""


# ---- session.* -----------------------------------------------------------------------------------------------------


class SessionOpened(Event, frozen=True, tag="session.opened", omit_defaults=True):
    """The first event of a session. `seed` is the first epoch's, `weights` a digest of the weight files.

    `mode` is what else of the runtime was not as usual (inexact, compiled, ..). `machine` names the instruction set
    that the chunks were computed with: another one may round differently. `contract` as in `api.Opened`. `latents`:
    kept of the first chunk of every future and of each so many chunks later, 0 = not at all (`latents.py`). `origin`:
    what its world goes on from, in the epoch of the same number; None = it begins. `drivers`: how several people drive,
    '' = one at a time.
    """

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
    machine: str = ""
    drivers: str = ""
    latents: int = 0
    origin: Origin | None = None


class StateMoved(Event, frozen=True, tag="session.moved"):
    before: WorldState
    after: WorldState
    cause: Cause


class EpochStarted(Event, frozen=True, tag="session.epoch", omit_defaults=True):
    """The world was started anew with `seed`, and from `first_frames` where pictures were given."""

    epoch: int
    seed: int
    participant: str
    first_frames: FirstFrames | None = None


class WorldTurned(Event, frozen=True, tag="session.turned", omit_defaults=True):
    """From `chunk` on, in this epoch, it is another future: the world is that of epoch `base` before that chunk. A
    rewind has an earlier chunk, a choice that of the end of the future that is kept.

    `noise`: the branch its noise is of, where that is not its own (a future that differs by its words or keys alone).
    `beside`: a future of a fork, which plays beside that of `base`, and goes on if it is chosen; `held` and
    `prompt_version`: keys and words of its own.
    """

    epoch: int
    chunk: int
    branch: int
    base: int
    participant: str
    noise: int = -1
    beside: bool = False
    held: tuple[str, ...] = ()
    prompt_version: int = 0

    @property
    def noise_of(self) -> int:
        return self.branch if self.noise < 0 else self.noise


class Joined(Event, frozen=True, tag="session.joined", omit_defaults=True):
    """`resumed` = the same participant came back with its token. `consent`: what they do may be used to train models;
    the last time they joined counts."""

    participant: str
    role: Role
    resumed: bool
    consent: bool = False


class Left(Event, frozen=True, tag="session.left"):
    """`gone` False = the connection is lost but the lease keeps the place; True = the place is free."""

    participant: str
    gone: bool


class DriverChanged(Event, frozen=True, tag="session.driver", omit_defaults=True):
    """None = nobody holds the wheel; `place`: which one of several."""

    before: str | None
    after: str | None
    place: int = 0


class Faulted(Event, frozen=True, tag="session.fault"):
    code: str
    detail: str
    fatal: bool


class RecordingMarked(Event, frozen=True, tag="session.recording"):
    """A film of that name begins or ends."""

    name: str
    running: bool


class SessionClosed(Event, frozen=True, tag="session.closed"):
    """The last event of a session."""

    reason: str


# ---- input.* -------------------------------------------------------------------------------------------------------


class InputReceived(Event, frozen=True, tag="input.received", omit_defaults=True):
    """An input message of the driver that held something new."""

    participant: str
    seq: int
    held: tuple[str, ...] = ()
    edges: tuple[KeyEdge, ...] = ()
    pointer: tuple[float, float] = (0.0, 0.0)
    levels: tuple[tuple[int, float], ...] = ()


# ---- prompt.* ------------------------------------------------------------------------------------------------------


class PromptAsked(Event, frozen=True, tag="prompt.asked", omit_defaults=True):
    """`parts`: what is mixed into it, each asked before; it has `weight` itself. `at`: the chunk it waits for, -1 =
    none.
    """

    participant: str
    number: int
    text: str
    transition: Transition
    frames: int
    weight: float = 1.0
    parts: tuple[MixedPart, ...] = ()
    at: int = -1


class PromptReady(Event, frozen=True, tag="prompt.ready", omit_defaults=True):
    """The version's embedding is there; it steers from the next chunk on. `embedding`: itself, where the text was
    redacted, so that the pictures can still be made again."""

    number: int
    key: str
    embedding: bytes = b""


# ---- adapters.* ----------------------------------------------------------------------------------------------------


class StackAsked(Event, frozen=True, tag="adapters.asked"):
    """'' = the server itself, as the world began."""

    participant: str
    number: int
    stack: tuple[AdapterChoice, ...]


class StackReady(Event, frozen=True, tag="adapters.ready"):
    """The stack is beside the weights, by the digests of its files; the next chunk is made with it."""

    number: int
    shares: tuple[AdapterShare, ...]
    rank: int
    bytes: int


# ---- segment.* -----------------------------------------------------------------------------------------------------


class SegmentStarted(Event, frozen=True, tag="segment.started"):
    """From `chunk` on the world runs under another intent: another prompt version, epoch or branch."""

    chunk: int
    prompt_version: int


# ---- chunk.* -------------------------------------------------------------------------------------------------------


class ChunkBegun(Event, frozen=True, tag="chunk.begun", omit_defaults=True):
    """`conditions` are what the world was steered by. `drivers`: who pressed what, where several drive."""

    chunk: int
    conditions: Conditions
    drivers: tuple[DriverInput, ...] = ()


class ChunkCommitted(Event, frozen=True, tag="chunk.committed"):
    """`digest` identifies its latents; '' where its pictures were lost."""

    chunk: int
    epoch: int
    digest: str
    late_us: int
    timings: Timings


class ChunkDropped(Event, frozen=True, tag="chunk.dropped"):
    """It was cancelled: nothing of it remains."""

    chunk: int
    epoch: int


# ---- frame.* -------------------------------------------------------------------------------------------------------


class FramesShown(Event, frozen=True, tag="frame.shown"):
    """A participant's screen showed frames from `first` to `last`."""

    participant: str
    first: int
    last: int


# ---- preference.* --------------------------------------------------------------------------------------------------


class FeedbackGiven(Event, frozen=True, tag="preference.rated"):
    """A like (1) or dislike (-1) of a chunk that was shown. `frame`: the last of it that was, -1 = known only to a
    server that was killed."""

    participant: str
    chunk: int
    value: int
    epoch: int
    frame: int


class PreferenceChosen(Event, frozen=True, tag="preference.chosen"):
    """Futures of one moment, in the order in which they were shown, and which one was kept.

    `context`: the digest of the last chunk they share. `chosen` is a branch, and the one that goes on also where nobody
    preferred one (`verdict`). `seconds`: from the fork to the choice.
    """

    participant: str
    chunk: int
    context: str
    weights: str
    branches: tuple[BranchRecord, ...]
    chosen: int
    verdict: Verdict
    seconds: float


# ---- weights.* -----------------------------------------------------------------------------------------------------


class WeightsLoaded(Event, frozen=True, tag="weights.loaded", omit_defaults=True):
    """From here on chunks are made by these weights and this machine; see `SessionOpened`."""

    weights: str
    steps: int
    precision: str
    mode: str = ""
    machine: str = ""


JournalEvent = (
    SessionOpened
    | StateMoved
    | EpochStarted
    | WorldTurned
    | Joined
    | Left
    | DriverChanged
    | Faulted
    | RecordingMarked
    | SessionClosed
    | InputReceived
    | PromptAsked
    | PromptReady
    | StackAsked
    | StackReady
    | SegmentStarted
    | ChunkBegun
    | ChunkCommitted
    | ChunkDropped
    | FramesShown
    | FeedbackGiven
    | PreferenceChosen
    | WeightsLoaded
)
