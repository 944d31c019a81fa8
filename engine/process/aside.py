"""A session put aside by one engine for another, also for one of a later process: bytes that say everything."""

import msgspec

from .. import api
from ..life.past import Past


class Aside(api.Message, frozen=True):
    """`past` since the checkpoint `snapshot`; b'' = there is none, and the past goes back to the beginning."""

    past: Past
    snapshot: bytes


class NotAside(ValueError):
    """These bytes were not put aside by an engine of this version."""


_decoder = msgspec.msgpack.Decoder(Aside)


def dumps(aside: Aside) -> bytes:
    return msgspec.msgpack.encode(aside)


def loads(data: bytes) -> Aside:
    """Raises `NotAside`."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise NotAside(f"a world that was put aside cannot be read: {error}") from error
