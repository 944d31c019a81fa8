"""Stay in a room for a while, press keys at random phase, and report what a person would have felt.

Behind `worldroom join`. Pictures of the toy card also say which input they contain, which checks the receipts.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ...film import Film
from ...rtc.wire import Role
from .latency import LatencyLog, LatencySpread
from .markers import read
from .pictures import RoomFrame
from .room import RoomClient, join
from .signalling import NoServer, RoomRefused

PATIENCE_S = 15.0
FIRST_FRAME_TIMEOUT_S = 15.0
HOLD_S = (0.06, 0.26)
REST_S = (0.09, 0.31)


class JoinFailed(RuntimeError):
    """The room could not be joined or showed nothing; one line for a person."""


class JoinReport(msgspec.Struct, frozen=True):
    """Times in ms. `motion_to_photon_ms` from receipts (None for who does not drive), `pixel_motion_to_photon_ms` from
    the toy's pictures.

    `dropped`: frames between the first and the last one seen that never became a picture here.
    """

    card: str
    session: str
    role: Role
    seconds: float
    frames: int
    fps: float
    first_frame_ms: float
    interval_ms: LatencySpread
    motion_to_photon_ms: LatencySpread | None
    pixel_motion_to_photon_ms: LatencySpread | None
    receipts: int
    dropped: int
    reconnects: int
    recorded: str | None


@dataclass(slots=True)
class Observation:
    """What one stay in a room showed."""

    pixels: LatencyLog = field(default_factory=LatencyLog)
    numbers: list[int] = field(default_factory=list)
    marked: int = 0

    def pressed(self, seq: int, at: float) -> None:
        self.pixels.pressed(seq, at)

    def joined(self, frame: RoomFrame) -> None:
        if frame.receipt is not None:
            self.numbers.append(frame.receipt.frame)
        marker = read(frame.picture) if frame.picture is not None else None
        if marker is not None:
            self.marked += 1
            self.pixels.contains(marker.input_seq, frame.decoded_at)

    @property
    def dropped(self) -> int:
        if not self.numbers:
            return 0
        return max(0, max(self.numbers) - min(self.numbers) + 1 - len(self.numbers))


async def run_join(
    url: str,
    *,
    seconds: float,
    out_mp4: Path | None = None,
    drive: bool = True,
    seed: int = 0,
    loopback: bool = False,
    access: str | None = None,
    cacert: Path | None = None,
    consent: bool = False,
    card: str | None = None,
    drivers: str | None = None,
) -> JoinReport:
    """Join, stay `seconds` from the first frame on, report. Raises `JoinFailed`.

    The film is whole under its name when this ends, however it ends; until then it grows beside it.
    """
    role = None if drive else Role.SPECTATOR
    film = None if out_mp4 is None else _film(out_mp4)
    try:
        coming = join(
            url,
            role=role,
            loopback=loopback,
            patience=PATIENCE_S,
            seed=seed,
            access=access,
            cacert=cacert,
            consent=consent,
            card=card,
            drivers=drivers,
        )
        async with coming as room:
            return await _stay(room, seconds, film, out_mp4, drive, random.Random(seed))
    except ValueError as error:
        raise JoinFailed(str(error)) from None
    except (RoomRefused, NoServer) as error:
        raise JoinFailed(f"cannot join: {error}") from None
    finally:
        if film is not None:
            film.close()


def _film(path: Path) -> Film:
    try:
        return Film(path)
    except OSError as error:
        raise JoinFailed(f"cannot write a film to {path}: {error.strerror}") from None


async def _stay(
    room: RoomClient, seconds: float, film: Film | None, out_mp4: Path | None, drive: bool, dice: random.Random
) -> JoinReport:
    welcome = room.welcome
    assert welcome is not None
    seen = Observation()
    room.pictures.on_joined = seen.joined
    if film is not None:
        film.fps, room.pictures.tap_frame = welcome.fps, film.frame
    reading = asyncio.create_task(_read(room))
    try:
        await _first_frame(room)
        began, before = time.monotonic(), room.latency.frames
        drives = drive and welcome.role is Role.DRIVER
        if drives and welcome.controls:
            await press_at_random(room, seen, seconds, dice)
        else:
            await asyncio.sleep(seconds)
        stayed, frames = time.monotonic() - began, room.latency.frames - before
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        room.pictures.tap_frame = None
    assert room.latency.first_frame is not None
    marked = seen.marked * 2 > room.pictures.counts.frames
    return JoinReport(
        card=welcome.card,
        session=welcome.session,
        role=welcome.role,
        seconds=round(stayed, 3),
        frames=room.pictures.counts.frames,
        fps=round(frames / stayed, 2),
        first_frame_ms=round((room.latency.first_frame - room.started_at) * 1000, 1),
        interval_ms=room.latency.intervals,
        motion_to_photon_ms=room.latency.photon if drives else None,
        pixel_motion_to_photon_ms=seen.pixels.photon if drives and marked else None,
        receipts=room.pictures.counts.receipts,
        dropped=seen.dropped,
        reconnects=room.counts.reconnects,
        recorded=str(out_mp4) if out_mp4 is not None else None,
    )


async def press_at_random(room: RoomClient, seen: Observation, seconds: float, dice: random.Random) -> None:
    """Hold one random key after another for random times, so that presses come at every phase of a frame."""
    assert room.welcome is not None
    keys = [control.keys[0] for control in room.welcome.controls if control.keys]
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        key = dice.choice(keys)
        at = time.monotonic()
        seen.pressed(room.press(key), at)
        await asyncio.sleep(min(left, dice.uniform(*HOLD_S)))
        room.release(key)
        await asyncio.sleep(min(max(0.0, until - time.monotonic()), dice.uniform(*REST_S)))


async def _read(room: RoomClient) -> None:
    async for _ in room.frames():
        pass


async def _first_frame(room: RoomClient) -> None:
    deadline = time.monotonic() + FIRST_FRAME_TIMEOUT_S
    while room.latency.first_frame is None:
        if time.monotonic() > deadline:
            raise JoinFailed(f"no picture within {FIRST_FRAME_TIMEOUT_S:.0f} s of joining")
        await asyncio.sleep(0.002)
