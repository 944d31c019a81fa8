"""What clients say to a room. See `messages.py`."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from .adapter_messages import Adapt
from .terms import ChannelMessage, ControlLevel, Keep, KeyCode, PromptText, Seq, Weight


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


class WeighedText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several texts that a world is a mix of. Weights count against each other: 3 and 1 are 75 and 25 %."""

    text: PromptText
    weight: Weight = 1.0


class Prompt(ChannelMessage, frozen=True):
    """Change the world by words. `seconds` is the length of a blend; a cut happens at the next chunk.

    `others`: texts that are mixed into the world beside `text`, which has `weight`; `Welcome.prompts_max` in all.
    `at`: the chunk at which it begins to change, as receipts count them; None or a past one = the next. `over`: so many
    chunks instead of `seconds`. A schedule is several of these in the order of their chunks, at most four that wait:
    once one took effect, those that were asked before it and still wait are answered with the problem `overtaken`.
    """

    id: Seq
    text: PromptText
    transition: Transition = Transition.BLEND
    seconds: Annotated[float, Meta(ge=0.0, le=10.0)] = 0.5
    weight: Weight = 1.0
    others: Annotated[tuple[WeighedText, ...], Meta(max_length=3)] = ()
    at: Seq | None = None
    over: Annotated[int, Meta(ge=0, le=1000)] | None = None


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


class Way(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a future differs from the one that plays: by a prompt, by keys that are held (`KeyboardEvent.code` of its
    controls) instead of the driver's, or, with neither, by chance. `weight`, `others`: its prompt is a mix, as in
    `Prompt`."""

    prompt: PromptText | None = None
    held: Annotated[tuple[KeyCode, ...], Meta(max_length=16)] = ()
    weight: Weight = 1.0
    others: Annotated[tuple[WeighedText, ...], Meta(max_length=3)] = ()


class Fork(ChannelMessage, frozen=True):
    """The world goes on in several futures at once, side by side in one picture (`SideBySide`), until `choose`: as it
    is in the first place, then in `others`. Applied at the chunk from which they differ.
    """

    id: Seq
    others: Annotated[tuple[Way, ...], Meta(min_length=1, max_length=3)] = (Way(),)


class Regenerate(ChannelMessage, frozen=True):
    """Another take of what plays under the present words: `rewind` to where that began, at most 60 seconds."""

    id: Seq


class Seek(ChannelMessage, frozen=True):
    """Of a replay (`Welcome.replay`): on from that chunk, as its receipts count them, from 0. What was made up to there
    is made again, unseen, so that may take a while. Applied at that chunk.
    """

    id: Seq
    chunk: Seq


class Choose(ChannelMessage, frozen=True):
    """Keep one future. After a `rewind`: the one that plays, or the other one. After a `fork`: that in `place`, from 0.

    A tie and a skip keep the one that plays, or that in `place`, and say that it was not preferred, or not judged.
    """

    id: Seq
    keep: Keep
    place: Annotated[int, Meta(ge=0, le=3)] | None = None


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
    | Adapt
    | PauseWorld
    | ResumeWorld
    | ResetWorld
    | Rewind
    | Fork
    | Regenerate
    | Seek
    | Choose
    | Feedback
    | PassWheel
    | RefuseWheel
    | Leave
    | Shown
    | Ping
)
