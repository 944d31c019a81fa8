"""Adapters in the vocabulary between a participant and a room."""

from typing import Annotated

import msgspec
from msgspec import Meta

from .terms import ChannelMessage, Seq


class AdapterChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An adapter by its name on the server (`Welcome.adapters`), and how strongly it acts; below 0 it acts away."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    scale: Annotated[float, Meta(ge=-4.0, le=4.0)] = 1.0


AdapterStack = Annotated[tuple[AdapterChoice, ...], Meta(max_length=4)]


class Adapt(ChannelMessage, frozen=True):
    """Make the world with these low-rank adapters beside its weights, in this order; an empty stack takes them away.

    Swapped between two chunks: `Applied` names the first one that is made with them.
    """

    id: Seq
    stack: AdapterStack = ()


class AdaptersChanged(ChannelMessage, frozen=True):
    """From its next chunk on the world is made with this stack (sent to everyone in the room)."""

    version: int
    stack: tuple[AdapterChoice, ...]
