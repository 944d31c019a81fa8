"""A session put aside by one engine for another, also for one of a later process: bytes that say everything."""

import msgspec

from .. import api
from ..session.resume_state import ResumeState


class SuspendedSession(api.Message, frozen=True):
    """`past` since the checkpoint `snapshot`; b'' = there is none, and the past goes back to the beginning."""

    past: ResumeState
    snapshot: bytes


class NotSuspended(ValueError):
    """These bytes were not put aside by an engine of this version."""


_decoder = msgspec.msgpack.Decoder(SuspendedSession)


def dumps(aside: SuspendedSession) -> bytes:
    return msgspec.msgpack.encode(aside)


def loads(data: bytes) -> SuspendedSession:
    """Raises `NotSuspended`."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise NotSuspended(f"a world that was put aside cannot be read: {error}") from error
