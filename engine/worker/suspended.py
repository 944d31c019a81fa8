"""A suspended session as bytes that say everything: another engine, also one of a later process, restores it."""

import msgspec

from .. import api
from ..session.resume_state import ResumeState


class SuspendedSession(api.Message, frozen=True):
    """`past` since the checkpoint `snapshot`; b'' = there is none, and the past goes back to the beginning.

    `parts_of`: under whose name the store of this machine has what the snapshot does not hold itself.
    """

    resume_state: ResumeState
    snapshot: bytes
    parts_of: str


_decoder = msgspec.msgpack.Decoder(SuspendedSession)


def dumps(session: SuspendedSession) -> bytes:
    return msgspec.msgpack.encode(session)


def written_down(state: ResumeState, name: str, snapshot: bytes | None) -> bytes:
    """A session by its history; `snapshot`: its checkpoint under that name, if there is one."""
    begun = next((step.chunk for step in state.history if isinstance(step, api.Begin)), 0)
    state = msgspec.structs.replace(state, complete=begun == 0)
    return dumps(SuspendedSession(state, snapshot or b"", name or state.opening.session))


def loads(data: bytes) -> SuspendedSession:
    """Raises ValueError when these bytes are no session that an engine of this version suspended."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise ValueError(f"a suspended world cannot be read: {error}") from error
