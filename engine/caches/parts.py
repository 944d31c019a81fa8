"""Parts: the large pieces of a written world by their content, and the manifest that names them. Pure.

    manifest = names of parts | a small body that refers to them | the parts themselves, where it has to stand alone

A part is a ring entry, a carry, a prompt's embedding or a picture. It never changes, so it is written once and shared
by every checkpoint, mark and fork that names it.
"""

import hashlib
from collections.abc import Callable, Mapping

import msgspec


class WorldPart(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=True):
    """`digest` of the content, sha256 in hexadecimal; `size` in bytes."""

    digest: str
    size: int


class PartLost(ValueError):
    """A part that a manifest names is not there, or is not what it was."""


class WorldManifest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """`inline`: the parts in their order, or nothing: then they lie in a store. `number`: of the chunk before which the
    world is that; 0 = not told.
    """

    parts: tuple[WorldPart, ...]
    body: bytes
    inline: tuple[bytes, ...] = ()
    number: int = 0

    def dumps(self) -> bytes:
        return _encoder.encode(self)

    def read(self, part: WorldPart, stored: Callable[[WorldPart], bytes] | None) -> bytes:
        """The part's content, checked by its digest; `stored`: reads what does not lie inline. Raises `PartLost`."""
        if self.inline and part in self.parts:
            return checked(part, self.inline[self.parts.index(part)])
        if stored is None:
            raise PartLost(f"part {part.digest[:12]} of {part.size} bytes lies in no store")
        return checked(part, stored(part))


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(WorldManifest)


def manifest_of(data: bytes) -> WorldManifest:
    """Inverse of `WorldManifest.dumps`; raises `PartLost`."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise PartLost(f"not a manifest: {error}") from error


def part_of(data: bytes) -> WorldPart:
    return WorldPart(hashlib.sha256(data).hexdigest(), len(data))


def checked(part: WorldPart, data: bytes) -> bytes:
    """The data, if it is the part's; raises `PartLost`."""
    found = part_of(data)
    if found != part:
        raise PartLost(f"part {part.digest[:12]} of {part.size} bytes is now {found.digest[:12]} of {found.size} bytes")
    return data


def whole(body: bytes, parts: Mapping[WorldPart, bytes]) -> bytes:
    """A manifest that stands alone."""
    return WorldManifest(tuple(parts), body, tuple(parts.values())).dumps()
