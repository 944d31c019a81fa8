"""The vocabulary between a participant and a room: what clients say and what the server answers.

Frozen tagged structs, unknown fields refused; `rtc/wire.py` turns them into bytes and back. All `*_ms` are on the clock
of whoever sent them: client times come back untouched, so latency needs no synchronized clocks.
"""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from .terms import ChannelMessage as ChannelMessage
from .terms import ControlLevel as ControlLevel
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


# ---- client to server -----------------------------------------------------------------------------------------------


class KeyEdge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key went down or up at client sequence `seq`."""

    seq: Seq
    key: KeyCode
    down: bool


class Input(ChannelMessage, frozen=True):
    """Channel `input` (unordered, never retransmitted), so each message is whole: the state now plus recent edges.

    `seq` grows by one with every change the client makes. `held`: keys down now. `edges`: the last changes, newest
    last, repeated over several messages against loss. `pointer`: motion summed since the client began, so that a lost
    message loses no motion. `levels`: how far sticks and triggers press controls, as (index in `Welcome.controls`,
    0..1); a control that is not `analog` takes half and more as pressed.
    """

    seq: Seq
    held: Annotated[tuple[KeyCode, ...], Meta(max_length=16)]
    edges: Annotated[tuple[KeyEdge, ...], Meta(max_length=16)] = ()
    pointer: tuple[float, float] = (0.0, 0.0)
    sent_ms: float = 0.0
    levels: Annotated[tuple[ControlLevel, ...], Meta(max_length=16)] = ()


class Transition(StrEnum):
    """RECACHE: a cut after which the world also remembers what it showed under the new words (`Welcome.recache`)."""

    CUT = "cut"
    BLEND = "blend"
    RECACHE = "recache"


class Prompt(ChannelMessage, frozen=True):
    """Change the world by words. `seconds` is the length of a blend; a cut happens at the next chunk."""

    id: Seq
    text: PromptText
    transition: Transition = Transition.BLEND
    seconds: Annotated[float, Meta(ge=0.0, le=10.0)] = 0.5


class PauseWorld(ChannelMessage, frozen=True):
    id: Seq


class ResumeWorld(ChannelMessage, frozen=True):
    id: Seq


class ResetWorld(ChannelMessage, frozen=True):
    """Start the world anew (a new epoch) under the current prompt; `seed` None = a fresh one."""

    id: Seq
    seed: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class Rewind(ChannelMessage, frozen=True):
    """Back by so many seconds of the world, and on from there in another future. What played so far stands still until
    `choose`. Applied at the chunk that it goes on with.
    """

    id: Seq
    seconds: Annotated[float, Meta(gt=0.0, le=60.0)]


class Choose(ChannelMessage, frozen=True):
    """After a `rewind`: go on with the future that plays, or with the other one. A tie and a skip keep the one that
    plays and say that it was not preferred, or not judged."""

    id: Seq
    keep: Keep


class Feedback(ChannelMessage, frozen=True):
    """A like (+1) or dislike (-1) of what is on screen: chunk as the client last showed it."""

    id: Seq
    chunk: Seq
    value: Annotated[int, Meta(ge=-1, le=1)]


class PassWheel(ChannelMessage, frozen=True):
    """The driver hands over to somebody who is connected, or lets go of the wheel when `to` is missing.

    From anyone else, without `to`: takes the wheel when nobody holds it or its holder has been away for a few seconds;
    otherwise asks for it (`Participants.asking`). Who asks gets it when the driver grants it, leaves or does nothing.
    """

    id: Seq
    to: Annotated[str, Meta(max_length=64)] | None = None


class RefuseWheel(ChannelMessage, frozen=True):
    """The driver refuses who asked for the wheel; who asked may take the question back with its own id."""

    id: Seq
    to: Annotated[str, Meta(max_length=64)]


class Leave(ChannelMessage, frozen=True):
    """Gives seat and wheel up, for good. A connection that ends without it keeps both for a while."""

    id: Seq


class Shown(ChannelMessage, frozen=True):
    """Closes traces: frames shown since the last report as (frame, shown_ms) on the client's clock."""

    frames: Annotated[tuple[tuple[Seq, float], ...], Meta(max_length=64)]


class Ping(ChannelMessage, frozen=True):
    id: Seq
    sent_ms: float


ClientMessage = (
    Input
    | Prompt
    | PauseWorld
    | ResumeWorld
    | ResetWorld
    | Rewind
    | Choose
    | Feedback
    | PassWheel
    | RefuseWheel
    | Leave
    | Shown
    | Ping
)


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


class PromptChanged(ChannelMessage, frozen=True):
    """The world's prompt is now this version (sent to everyone in the room).

    `understood` and `missed`: words of it that the world knows and does not know; both empty where it cannot tell.
    """

    version: int
    text: str
    understood: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody who is connected: `participant` is what `passwheel` takes as `to`.

    `metadata`: what the application that gave out the token says of them.
    """

    participant: str
    name: str
    grant: Grant = Grant.DRIVER
    metadata: str = ""


class Participants(ChannelMessage, frozen=True):
    """Who is in the room: the driver's participant id (None = free wheel), the number of spectators, and everybody who
    is connected, in order of coming.

    `asking`: who asked for the wheel, in that order. `wheel_in_s`: the driver is away, and in so many seconds anybody
    may take the wheel (0 = now).
    """

    driver: str | None
    you: Role
    spectators: int
    people: tuple[Person, ...] = ()
    asking: tuple[str, ...] = ()
    wheel_in_s: float | None = None


class Pong(ChannelMessage, frozen=True):
    id: int
    sent_ms: float


class Receipt(ChannelMessage, frozen=True, omit_defaults=True):
    """Channel `receipts`, one per frame: what this frame is and what it contains.

    `rtp` is the frame's RTP timestamp at this viewer (joins it to the decoded picture). `input_seq` is the last input
    it contains, `applied` the controls that were applied. Durations in microseconds: `hold` input received to chunk
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
    Welcome | Accepted | Applied | Problem | StateChanged | PromptChanged | Participants | Pong | Receipt | Receipts
)
