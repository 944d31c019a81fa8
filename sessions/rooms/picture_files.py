"""What picture files say beside their pixels: how they are turned, whether they are whole, what need not be decoded.

    PNG    chunks       text and profiles may swell a thousandfold when inflated: only what makes the picture is kept
    JPEG   segments     EXIF lies in APP1
    WebP   RIFF chunks  EXIF beside the picture; more than one picture is a flag of VP8X

Pure: bytes in, bytes and numbers out. Nothing here inflates anything.
"""

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_PNG_HEAD = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = frozenset([b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND", b"gAMA", b"cHRM", b"sRGB", b"cICP", b"sBIT"])
_ORIENTATION = 0x0112
_TIFF_ENTRIES_MAX = 256


class Torn(ValueError):
    """The file ends before its picture does."""


def upright(rgb_HWC: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """A picture as it is meant to be seen; `orientation` as in EXIF, 1 to 8."""
    match orientation:
        case 2:
            return rgb_HWC[:, ::-1]
        case 3:
            return rgb_HWC[::-1, ::-1]
        case 4:
            return rgb_HWC[::-1]
        case 5:
            return rgb_HWC.swapaxes(0, 1)
        case 6:
            return np.rot90(rgb_HWC, -1)
        case 7:
            return rgb_HWC[::-1, ::-1].swapaxes(0, 1)
        case 8:
            return np.rot90(rgb_HWC, 1)
        case _:
            return rgb_HWC


# ---- PNG ------------------------------------------------------------------------------------------------------------


def bare_png(data: bytes) -> tuple[bytes, int]:
    """The PNG without what is no part of its picture, and its orientation; raises `Torn`."""
    kept, orientation = [_PNG_HEAD], 1
    for kind, whole in _png_chunks(data):
        if kind in _PNG_KEPT:
            kept.append(whole)
        elif kind == b"eXIf":
            orientation = _tiff_orientation(whole[8:-4])
        if kind == b"IEND":
            return b"".join(kept), orientation
    raise Torn


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and bytes of each chunk; raises `Torn` at one that is cut off."""
    at = len(_PNG_HEAD)
    while at < len(data):
        if at + 12 > len(data):
            raise Torn
        (length,) = struct.unpack_from(">I", data, at)
        end = at + 12 + length
        if end > len(data):
            raise Torn
        yield data[at + 4 : at + 8], data[at:end]
        at = end


# ---- JPEG -----------------------------------------------------------------------------------------------------------


def jpeg_orientation(data: bytes) -> int:
    """From the EXIF segment, 1 without one; raises `Torn` when the end of the picture is not there."""
    if b"\xff\xd9" not in data[-65536:]:
        raise Torn
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        kind, (length,) = data[at + 1], struct.unpack_from(">H", data, at + 2)
        if kind == 0xDA:
            break
        segment = data[at + 4 : at + 2 + length]
        if kind == 0xE1 and segment.startswith(b"Exif\0\0"):
            return _tiff_orientation(segment[6:])
        at += 2 + length
    return 1


# ---- WebP -----------------------------------------------------------------------------------------------------------


def webp_facts(data: bytes) -> tuple[bool, int]:
    """Whether it is animated, and its orientation; raises `Torn`."""
    (length,) = struct.unpack_from("<I", data, 4) if len(data) >= 12 else (0,)
    if length + 8 > len(data) or length < 4:
        raise Torn
    animated, orientation, at = False, 1, 12
    while at + 8 <= len(data):
        kind, (size,) = data[at : at + 4], struct.unpack_from("<I", data, at + 4)
        body = data[at + 8 : at + 8 + size]
        if kind == b"VP8X" and body:
            animated = bool(body[0] & 0x02)
        elif kind == b"EXIF":
            orientation = _tiff_orientation(body.removeprefix(b"Exif\0\0"))
        at += 8 + size + size % 2
    return animated, orientation


# ---- EXIF -----------------------------------------------------------------------------------------------------------


def _tiff_orientation(tiff: bytes) -> int:
    """The orientation tag of the first directory, 1 where there is none that can be read."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None or len(tiff) < 8:
        return 1
    (at,) = struct.unpack_from(f"{order}I", tiff, 4)
    if at + 2 > len(tiff):
        return 1
    (entries,) = struct.unpack_from(f"{order}H", tiff, at)
    for number in range(min(entries, _TIFF_ENTRIES_MAX)):
        entry = at + 2 + 12 * number
        if entry + 12 > len(tiff):
            break
        tag, kind = struct.unpack_from(f"{order}HH", tiff, entry)
        if tag == _ORIENTATION and kind == 3:
            (value,) = struct.unpack_from(f"{order}H", tiff, entry + 8)
            return int(value) if 1 <= value <= 8 else 1
    return 1
