"""The vocabulary between a participant and a room: what clients say and what the server answers.

Frozen tagged structs, unknown fields refused; `rtc/wire` turns them into bytes and back. All `*_ms` are on the clock
of whoever sent them: client times come back untouched, so latency needs no synchronized clocks.
"""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from .adapter_messages import Adapt as Adapt
from .adapter_messages import AdapterChoice as AdapterChoice
from .adapter_messages import AdaptersChanged as AdaptersChanged
from .client_messages import Choose as Choose
from .client_messages import ClientMessage as ClientMessage
from .client_messages import Feedback as Feedback
from .client_messages import Fork as Fork
from .client_messages import Input as Input
from .client_messages import KeyEdge as KeyEdge
from .client_messages import Leave as Leave
from .client_messages import PassWheel as PassWheel
from .client_messages import PauseWorld as PauseWorld
from .client_messages import Ping as Ping
from .client_messages import Prompt as Prompt
from .client_messages import RefuseWheel as RefuseWheel
from .client_messages import Regenerate as Regenerate
from .client_messages import ResetWorld as ResetWorld
from .client_messages import ResumeWorld as ResumeWorld
from .client_messages import Rewind as Rewind
from .client_messages import Seek as Seek
from .client_messages import Shown as Shown
from .client_messages import Transition as Transition
from .client_messages import Way as Way
from .client_messages import WeighedText as WeighedText
from .terms import ChannelMessage as ChannelMessage
from .terms import ControlLevel as ControlLevel
from .terms import DriversText as DriversText
from .terms import Grant as Grant
from .terms import Keep as Keep
from .terms import KeyCode as KeyCode
from .terms import PersonName as PersonName
from .terms import PromptText as PromptText
from .terms import Role as Role
from .terms import Seq as Seq
from .terms import Unit as Unit

PROTOCOL = 2
"""Grows when a client of before could misunderstand a message; new fields and new messages alone do not count."""


# ---- server to client -----------------------------------------------------------------------------------------------


class ControlView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`analog`: it may be pressed part of the way."""

    name: str
    keys: tuple[str, ...]
    analog: bool = False


class FirstFrameView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The size of the picture a world may begin from; others are cut and scaled to it."""

    width: int
    height: int


class WorldState(StrEnum):
    """The session's states as its viewers see them."""

    OPENING = "opening"
    RUNNING = "running"
    PAUSED = "paused"
    HELD = "held"
    CLOSED = "closed"


class Welcome(ChannelMessage, frozen=True):
    """First message on `control`. `resumed` = back in the same world, so `epoch` and `chunk` go on.

    `first_frame` None = worlds begin from words alone. `recache`: prompts may use that transition. `pointer`: the
    world takes motion. `prompt_chars`: code points that a prompt may have. `lease_s`: so long an empty room is held.
    `adapters`: names that `Adapt` takes. `stack`: what the world has of them. `prompts_max`: texts that one prompt may
    mix, 1 = this world mixes none. `players`: so many have these controls, each their own. `drivers`: how several
    people drive: `turns`, `controls:2`, `controls:left+right,up`, `vote:5`. `replay`: the session that is shown again
    here, which nobody steers; '' = this world is a new one. `replay_chunks`: so many it has, for `Seek`.
    `counterfactual`: how what is shown differs from what was recorded, '' = not at all.
    """

    room: str
    session: str
    participant: str
    role: Role
    card: str
    title: str
    width: int
    height: int
    fps: int
    controls: tuple[ControlView, ...]
    suggestions: tuple[str, ...]
    prompt: str
    state: WorldState
    epoch: int
    chunk: int
    resumed: bool
    first_frame: FirstFrameView | None = None
    recache: bool = False
    protocol: int = PROTOCOL
    pointer: bool = False
    prompt_chars: int = 500
    lease_s: float = 0.0
    adapters: tuple[str, ...] = ()
    stack: tuple[AdapterChoice, ...] = ()
    prompts_max: int = 1
    players: int = 1
    drivers: str = "turns"
    replay: str = ""
    replay_chunks: int = 0
    counterfactual: str = ""


class Accepted(ChannelMessage, frozen=True):
    """The first of two answers to a steer: it is journaled. `id` is the message's id."""

    id: int


class Applied(ChannelMessage, frozen=True):
    """The second answer: it took effect at this chunk."""

    id: int
    chunk: int


class Problem(ChannelMessage, frozen=True):
    """Bad input or a refused act; nothing was lost. `id` None = the message could not be read that far."""

    code: str
    detail: str
    id: int | None = None


class StateChanged(ChannelMessage, frozen=True):
    state: WorldState
    epoch: int


class FutureView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several futures: its branch in the journal, and a prompt ('' = the world's) or keys of its own."""

    branch: int
    prompt: str = ""
    held: tuple[str, ...] = ()


class SideBySide(ChannelMessage, frozen=True):
    """From about now the picture shows so many futures of the world, which differ from `chunk` on: two in the middle,
    left and right; three or four by rows of two. Receipts are those of the first. `places` () = one again. `earlier`:
    another take of the world stands still; who drives may keep that one.
    """

    chunk: int
    places: tuple[FutureView, ...] = ()
    earlier: bool = False


class PromptChanged(ChannelMessage, frozen=True):
    """The world's prompt is now this version (sent to everyone in the room).

    `understood` and `missed`: words of it that the world knows and does not know; both empty where it cannot tell.
    `weight` and `others`: as they were asked for.
    """

    version: int
    text: str
    understood: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    weight: float = 1.0
    others: tuple[WeighedText, ...] = ()


class PlannedView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt that waits for chunk `at`; the rest as in `PromptChanged`."""

    version: int
    at: int
    text: str
    weight: float = 1.0
    others: tuple[WeighedText, ...] = ()


class PromptsPlanned(ChannelMessage, frozen=True):
    """Prompts that wait for their chunk, the next one first (sent to everyone in the room, and to who comes). () = none
    any more.
    """

    prompts: tuple[PlannedView, ...] = ()


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody who is connected: `participant` is what `passwheel` takes as `to`.

    `metadata`: what the application that gave out the token says of them.
    """

    participant: str
    name: str
    grant: Grant = Grant.DRIVER
    metadata: str = ""


class PlaceView(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A place at the wheel: who holds it (None = nobody), of which player it is (from 0), and the indices of the
    controls that it steers now. What nobody is there for, the first driver of that player has.
    """

    holder: str | None
    player: int
    controls: tuple[int, ...]


class Participants(ChannelMessage, frozen=True):
    """Who is in the room: the driver's participant id (None = free wheel), the number of spectators, and everybody who
    is connected, in order of coming.

    `asking`: who asked for the wheel, in that order. `wheel_in_s`: the driver is away, and in so many seconds anybody
    may take the wheel (0 = now). `drivers`: everybody who drives, `driver` first. `places`: what each of them steers,
    and where nobody does.
    """

    driver: str | None
    you: Role
    spectators: int
    people: tuple[Person, ...] = ()
    asking: tuple[str, ...] = ()
    wheel_in_s: float | None = None
    drivers: tuple[str, ...] = ()
    places: tuple[PlaceView, ...] = ()


class Pong(ChannelMessage, frozen=True):
    id: int
    sent_ms: float


class Receipt(ChannelMessage, frozen=True, omit_defaults=True):
    """Channel `receipts`, one per frame: what this frame is and what it contains.

    `rtp` is the frame's RTP timestamp at this viewer (joins it to the decoded picture). `input_seq` is the last input
    of yours that it contains (of the first driver's, if you do not drive), `applied` the controls of that player as
    they were applied. Durations in microseconds: `hold` input received to chunk
    begun, `wait` begun to first step, then `step`, `decode`, `encode`, and `pace` all the rest until it was sent:
    between the steps, for its playout time, on the way to the edge. Together they are input received to packet sent.
    `preview`: a first look at what its chunk will be, before that is done.
    """

    frame: int
    chunk: int
    epoch: int
    rtp: int
    prompt_version: int
    input_seq: int
    applied: tuple[float, ...]
    hold_us: int
    wait_us: int
    step_us: int
    decode_us: int
    encode_us: int
    pace_us: int
    preview: bool = False


class Receipts(ChannelMessage, frozen=True):
    """Channel `receipts`, to spectators: the receipts of several frames at once, oldest first."""

    items: Annotated[tuple[Receipt, ...], Meta(max_length=16)]


ServerMessage = (
    Welcome
    | Accepted
    | Applied
    | Problem
    | StateChanged
    | SideBySide
    | PromptChanged
    | PromptsPlanned
    | AdaptersChanged
    | Participants
    | Pong
    | Receipt
    | Receipts
)
