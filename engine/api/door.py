"""What goes through the one door of the engine: messages in, events out.

Message-shaped on purpose: the same structs cross the worker's socket (`worker/ipc.py`). Imports no tensor library.
Times are seconds on the server's monotonic clock (`Clock.now`), durations are microseconds (`_us`).
"""

from enum import StrEnum

from ...models.contract.conditions import Conditions, PromptMeaning
from ...models.contract.first_frames import FirstFrames
from ...models.contract.version import CONTRACT_VERSION
from .adapters import AdaptersReady, SetAdapters
from .frames import Frame, Rendered, Timings
from .info import CardInfo
from .message import LatencyClass, Message
from .rendition import Rendition

# ---- commands: into the engine -------------------------------------------------------------------------------------


class Open(Message, frozen=True):
    """Reserve everything a session needs. `steps` None = the recipe's default, or fewer where only those fit.

    `line`: who waits, when everything is taken. The same name keeps its place from one attempt to the next, and an
    attempt with a place is answered when that moves, or after a few seconds. '' = never wait.
    """

    session: str
    card: str
    seed: int
    latency_class: LatencyClass = LatencyClass.INTERACTIVE
    branch: int = 0
    steps: int | None = None
    line: str = ""


class Close(Message, frozen=True):
    """Cancel what runs, free the slot, drop the playout clock. Unknown sessions are ignored."""

    session: str


class EncodePrompt(Message, frozen=True):
    """Run the prompt_encode step; answered by `PromptEncoded` or `Fault`. `tell`: the answer carries the embedding."""

    session: str
    version: int
    text: str
    tell: bool = False


class HoldPrompt(Message, frozen=True):
    """In place of a text: hold an embedding that a `PromptEncoded` carried, under any key. Answered the same."""

    session: str
    version: int
    key: str
    embedding: bytes


class Begin(Message, frozen=True):
    """The answer to `ChunkDue`: conditions sampled as late as possible. `keep`: its latents are wanted with it.

    One that is no answer to the chunk that is due (stale, of an older epoch, after `Pause`) comes back as
    `ChunkCancelled`.
    """

    session: str
    chunk: int
    conditions: Conditions
    keep: bool = False


class Supersede(Message, frozen=True):
    """The world was redirected: cancel running work of epochs before `epoch` at its next step boundary.
    `restart` also forgets the world (carry and committed cache) and goes on with `seed`, and from `first_frames`."""

    session: str
    epoch: int
    restart: bool = False
    seed: int = 0
    first_frames: FirstFrames | None = None


class Branched(Message, frozen=True):
    """A step of a world's history: from `chunk` on it is another future, whose noise is of `branch`."""

    session: str
    chunk: int
    branch: int


class Branch(Message, frozen=True):
    """Another future of a session, as a session of its own: its name, its epoch, and the branch its noise is of."""

    session: str
    noise: int
    epoch: int


class ForkSession(Message, frozen=True):
    """Make other futures of a running session, from its next boundary on: all of them or none."""

    session: str
    branches: tuple[Branch, ...]


class Forked(Message, frozen=True):
    """The futures part before `chunk`. Each has the snapshot before chunk `mark` of the session; 0 = there is none."""

    session: str
    chunk: int
    mark: int = 0


class ShowBeside(Message, frozen=True):
    """Frames of `session` show it and the others, each in its place; `others` () = it alone again."""

    session: str
    others: tuple[str, ...] = ()


HistoryStep = Begin | Supersede | Branched


class Pause(Message, frozen=True):
    """Finish the chunk in flight, then ask for no more."""

    session: str


class Resume(Message, frozen=True):
    """Go on at the normal pace from now: the playout clock is laid anew, no time is caught up."""

    session: str


class RequestKey(Message, frozen=True):
    """A viewer needs a key frame, of a rendition that may begin with it. Coalesced: at most one per 300 ms; `joined`
    bypasses that once.
    """

    session: str
    joined: bool = False
    rendition: Rendition = Rendition.H264


class SetBitrate(Message, frozen=True):
    """Encode at another rate, a rendition that may begin with it. H264 alone goes on if nobody asks again."""

    session: str
    kbps: int
    rendition: Rendition = Rendition.H264


Command = (
    Close
    | EncodePrompt
    | SetAdapters
    | HoldPrompt
    | Begin
    | Supersede
    | Pause
    | Resume
    | RequestKey
    | SetBitrate
    | ShowBeside
)


# ---- events: out of the engine -------------------------------------------------------------------------------------


class Opened(Message, frozen=True):
    """Reserved. For replay: `weights` is a digest of the weight files; `steps`, `precision` and `mode` (what else is
    not as usual: inexact, compiled, ..) are as run, on `machine` (its instruction set; others may round otherwise).
    `contract`: the version of the contract between engine and models.
    """

    session: str
    card: CardInfo
    weights: str = ""
    steps: int = 0
    precision: str = ""
    mode: str = ""
    contract: int = CONTRACT_VERSION
    machine: str = ""


class RefusalReason(StrEnum):
    UNKNOWN_CARD = "unknown_card"
    RECIPE = "recipe"
    NO_SLOT = "no_slot"
    NO_COMPUTE = "no_compute"
    NO_MEMORY = "no_memory"
    CONFLICT = "conflict"
    NOT_READY = "not_ready"
    ROOM_FULL = "room_full"
    ROOM_NAME = "room_name"
    DRIVERS = "drivers"


class Unit(StrEnum):
    PLACES = "places"
    BYTES = "bytes"
    SHARE = "share"


class Shortage(Message, frozen=True):
    """Why something does not fit: `needed` beside `used` of `limit`. A share is of one device, 0..1."""

    needed: float
    used: float
    limit: float
    unit: Unit


class Refused(Message, frozen=True):
    """Nothing was reserved. `detail` says for a person what `figures` say; `retry_after_s` is honoured by clients.

    `queue_place`: from 1 in front, 0 = not in line.
    """

    session: str
    reason: RefusalReason
    detail: str
    queue_place: int
    retry_after_s: float
    figures: Shortage | None = None


class PromptEncoded(Message, frozen=True):
    """`meaning`: which words of the prompt count, where the card can tell. `embedding`: what `HoldPrompt` takes, where
    it was asked for and can be written down."""

    session: str
    version: int
    key: str
    meaning: PromptMeaning | None = None
    embedding: bytes = b""


class ChunkDue(Message, frozen=True):
    """Answer with `Begin` now: work must start at once to be shown at `deadline`."""

    session: str
    chunk: int
    deadline: float


class ChunkDone(Message, frozen=True):
    """Committed. `digest` identifies its latents for replay ('': its pictures were lost, and with them what tells it);
    `late_us`: by how much its first frame comes late. `late`: by so much that the playout clock moves. `latents`: a
    .npy file, where they were wanted.
    """

    session: str
    chunk: int
    epoch: int
    digest: str
    late_us: int
    timings: Timings
    late: bool = False
    latents: bytes = b""


class ChunkCancelled(Message, frozen=True):
    session: str
    chunk: int
    epoch: int


class Fault(Message, frozen=True):
    """A session's work failed; the session goes on from its last commit. `fatal`: not by itself, `Resume` tries again.

    `whole`: nothing of the world is lost with it, so that it is worth being tried again.
    `prompt_version` > 0: the prompt that could not be encoded; `adapters_version` > 0: the stack that cannot be had.
    """

    session: str
    code: str
    detail: str
    fatal: bool
    prompt_version: int = 0
    adapters_version: int = 0
    whole: bool = False

    @property
    def ends(self) -> bool:
        """Whether the world is over by it."""
        return self.fatal and not self.whole

    @property
    def of_chunk(self) -> bool:
        """Whether a chunk failed, and not what was asked for beside it."""
        return not (self.prompt_version or self.adapters_version)


Event = PromptEncoded | AdaptersReady | ChunkDue | ChunkDone | ChunkCancelled | Frame | Rendered | Fault
