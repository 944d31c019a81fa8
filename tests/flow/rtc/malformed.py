"""Seeded nonsense: HTTP requests, SDP and channel messages that are almost right. Pure: dice are an argument.

Requests and messages are made from the types' own JSON Schema, then spoilt; texts of peers are real ones, cut, doubled,
shuffled and written over.
"""

import json
import random
from dataclasses import dataclass
from typing import Any

import msgspec
from worldroom.rtc.wire import OfferBody, RoomAsk
from worldroom.sessions.messages import ClientMessage

(MESSAGES, *_), COMPONENTS = msgspec.json.schema_components((ClientMessage, OfferBody, RoomAsk))
CHARS_MAX = 15_000
"""Of a message; longer ones end a connection by design, and have a test of their own."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
PATHS = (
    "/",
    "/play",
    "/r/{}",
    "/healthz",
    "/readyz",
    "/v1/rooms",
    "/v1/cards",
    "/v1/capacity",
    "/v1/sessions",
    "/v1/rooms/{}/offer",
    "/v1/rooms/{}/ice",
    "/v1/rooms/{}/first_frame",
    "/v1/rooms/{}/whep",
    "/v1/rooms/{}/whep/{}",
    "/v1/rooms/{}/whip",
    "/v1/rooms/{}/whip/{}",
    "/v1/rooms/{}/{}",
    "/{}",
)
TYPES = (
    "application/json",
    "application/sdp",
    "application/trickle-ice-sdpfrag",
    "image/png",
    "video/mp4",
    "text/html",
    "",
    ";",
)
ODD = (
    "",
    "..",
    "%00",
    "%2e%2e%2f",
    "a" * 300,
    "sl\u00f8v",
    "\u202e",
    "0",
    "-1",
    "null",
    "{}",
    "'; --",
    "blue-otter-12",
    "../../etc/passwd",
)
NUMBERS = (0, -1, 1, 2**31, 2**53, 2**64, -(2**70), 0.5, -0.0, 1e308, 1e-320)


@dataclass(frozen=True)
class BadRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def requests(dice: random.Random, sdp: str) -> BadRequest:
    path = dice.choice(PATHS)
    while "{}" in path:
        path = path.replace("{}", quoted(dice.choice((*ODD, "test", "fuzz"))), 1)
    headers = {"Content-Type": dice.choice(TYPES), "Accept": dice.choice(("*/*", "text/html", "q=;"))}
    for name in ("If-Match", "Authorization", "Origin", "Range", "X-Forwarded-For", "Accept-Encoding"):
        if dice.random() < 0.2:
            headers[name] = dice.choice(
                ("*", '"x"', "Bearer x", "Bearer a.b.c", "Basic !!!", "null", "bytes=9-1", ",,,", "::1")
            )
    match dice.randrange(4):
        case 0:
            body = dice.randbytes(dice.choice((0, 1, 64, 4096)))
        case 1:
            body = text_of(dice, dice.choice(("OfferBody", "RoomAsk")))
        case 2:
            body = spoilt_sdp(dice, sdp).encode("utf-8", "replace")
        case _:
            body = json.dumps({"sdp": spoilt_sdp(dice, sdp)}).encode()
    return BadRequest(dice.choice(METHODS), path, headers, body)


def quoted(text: str) -> str:
    return "".join(
        letter if letter.isascii() and letter not in " /?#" else f"%{ord(letter) % 256:02x}" for letter in text
    )


def misplace(dice: random.Random, lines: list[str], how: int, at: int, other: int) -> None:
    """`how` 0 to 3: the line at `at` is left out, has another one put before it, changes places with it, or is cut."""
    match how:
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at] = lines[at][: dice.randint(0, len(lines[at]))]


def spoilt_sdp(dice: random.Random, sdp: str) -> str:
    """One to four things are done to it."""
    lines = sdp.splitlines()
    for _ in range(dice.randint(1, 4)):
        at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        match how := dice.randrange(8):
            case 0 | 1 | 2 | 3:
                misplace(dice, lines, how, at, other)
            case 4:
                lines[at] = lines[at].replace(dice.choice("0123456789 :=/"), str(dice.choice(NUMBERS)), 1)
            case 5:
                lines = lines[:at] + lines[at:] * dice.choice((1, 2, 3))
            case 6:
                lines[at] = "".join(chr(dice.randrange(1, 0x2FF)) for _ in range(dice.randint(1, 40)))
            case _:
                lines = lines[: at + 1]
        lines = lines or ["v=0"]
    return dice.choice(("\r\n", "\n", "\r")).join(lines) + dice.choice(("\r\n", ""))


def messages(dice: random.Random) -> str | bytes:
    """A client message with something wrong in it, mostly."""
    names = [ref["$ref"].rpartition("/")[2] for ref in MESSAGES["anyOf"]]
    text = text_of(dice, dice.choice(names))
    match dice.randrange(6):
        case 0:
            text = text[: dice.randint(0, len(text))]
        case 1:
            at = dice.randrange(len(text) + 1)
            text = text[:at] + dice.randbytes(dice.randint(1, 8)) + text[at:]
        case 2:
            text = b"[" * dice.choice((1, 500, 8000)) + text
        case 3:
            return text[:CHARS_MAX]
        case _:
            pass
    return text.decode("utf-8", "ignore")[:CHARS_MAX]


def text_of(dice: random.Random, name: str) -> bytes:
    return json.dumps(value_of(dice, COMPONENTS[name], 0)).encode()


def value_of(dice: random.Random, schema: dict[str, Any], depth: int) -> Any:
    """What the schema wants, or in one case of eight something else."""
    if dice.random() < 0.125 or depth > 6:
        return dice.choice((*ODD, *NUMBERS, None, True, [], {}, [[]], {"type": "input"}))
    match schema:
        case {"$ref": ref}:
            return value_of(dice, COMPONENTS[ref.rpartition("/")[2]], depth + 1)
        case {"anyOf": choices}:
            return value_of(dice, dice.choice(choices), depth + 1)
        case {"enum": values}:
            return dice.choice(values)
        case {"properties": fields}:
            kept = [field for field in fields if dice.random() < 0.9]
            extra = {dice.choice(ODD): 1} if dice.random() < 0.1 else {}
            return {field: value_of(dice, fields[field], depth + 1) for field in kept} | extra
        case {"type": "array"}:
            items = schema.get("items") or {"anyOf": schema.get("prefixItems") or [{"type": "null"}]}
            return [value_of(dice, items or {}, depth + 1) for _ in range(dice.choice((0, 1, 2, 17, 70)))]
        case {"type": "integer" | "number"}:
            return dice.choice((*NUMBERS, dice.randrange(1000)))
        case {"type": "string"}:
            return dice.choice((*ODD, "KeyW", "ArrowUp", "snow", "x" * 600))
        case {"type": "boolean"}:
            return dice.random() < 0.5
        case _:
            return None
