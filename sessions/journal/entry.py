"""One entry of a journal: an event with its place in the session's history. Bytes to entries and back, by version.

    body (JSON): version | event | epoch | branch | cause      stored once; session, number and time are the store's

A body of another version is refused by its number and never guessed at.
"""

from collections.abc import Iterable

import msgspec

from .events import JournalEvent

VERSION = 2


class JournalVersion(ValueError):
    """A body that this version cannot read; one clear line."""


class Stamp(msgspec.Struct, frozen=True):
    """Where in a world's life an event belongs. `cause`: the number of the entry that led to it, 0 = none in here."""

    epoch: int = 0
    branch: int = 0
    cause: int = 0


NOWHERE = Stamp()


class Body(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is stored of an entry."""

    version: int
    event: JournalEvent
    epoch: int = 0
    branch: int = 0
    cause: int = 0


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event as readers get it. `number` counts from 1 in its session, `at` is Unix seconds.

    `epoch` and `branch`: of the world when it happened. `cause`: the number of the entry that led to it (the input
    that a chunk took, the begin of a chunk that is committed, the asking of a prompt that is ready); 0 = none.
    """

    version: int
    session: str
    number: int
    at: float
    event: JournalEvent
    epoch: int = 0
    branch: int = 0
    cause: int = 0


class _Versioned(msgspec.Struct):
    """The lenient second look at a body that could not be read."""

    version: int = 1


class _Typed(msgspec.Struct):
    type: str


class _TypeOnly(msgspec.Struct):
    event: _Typed


class _Rated(msgspec.Struct):
    value: int = 0


class _RatedOnly(msgspec.Struct):
    event: _Rated


RATED = b'"preference.rated"'
_rated = msgspec.json.Decoder(_RatedOnly)
_types = msgspec.json.Decoder(_TypeOnly)
_decoder = msgspec.json.Decoder(Body)
_encoder = msgspec.json.Encoder()


def encode(event: JournalEvent, stamp: Stamp) -> bytes:
    return _encoder.encode(Body(VERSION, event, stamp.epoch, stamp.branch, stamp.cause))


def decode(session: str, number: int, at: float, body: bytes) -> Entry:
    """Raises `JournalVersion`."""
    try:
        read = _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise _refusal(session, number, body, error) from None
    if read.version != VERSION:
        raise _refusal(session, number, body, None)
    return Entry(read.version, session, number, at, read.event, read.epoch, read.branch, read.cause)


def ratings(bodies: Iterable[bytes]) -> tuple[int, int]:
    """Likes and dislikes among stored events; the others are hardly looked at."""
    values = [_rated.decode(body).event.value for body in bodies if RATED in body]
    return sum(value > 0 for value in values), sum(value < 0 for value in values)


def type_of(body: bytes) -> str:
    """The type of a stored event, without reading the rest."""
    return _types.decode(body).event.type


def _refusal(session: str, number: int, body: bytes, error: Exception | None) -> JournalVersion:
    where = f"entry {number} of session {session}"
    try:
        version = msgspec.json.decode(body, type=_Versioned).version
    except msgspec.MsgspecError:
        return JournalVersion(f"{where} is no journal entry")
    if version != VERSION:
        return JournalVersion(f"{where} was written by journal version {version}; this Worldroom reads {VERSION}")
    return JournalVersion(f"{where} cannot be read: {error}")
