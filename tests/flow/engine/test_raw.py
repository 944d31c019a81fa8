"""Raw frames through shared memory: exactly what the model made, only where asked for, gone with the session."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.engine.output.encode import EncodedFrame
from worldroom.engine.output.raw import RawReader, RawRing
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker.client import WorkerClient
from worldroom.engine.worker.spec import WorkerSpec
from worldroom.kernels.frames_to_yuv import frames_to_yuv
from worldroom.models.contract.card import FrameSpec, Pixels
from worldroom.models.family import packed
from worldroom.models.toy.card import ToySpec
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import BlankEncoder, Person, started, steady, until


def rings(folder: str | Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith("raw-")]


TIMINGS = api.Timings(0, 0, 0, 0)


def frames(fps: int, pixels: Pixels = Pixels.RGB) -> FrameSpec:
    return FrameSpec(width=6, height=4, scale=2, fps=fps, per_chunk=1, smooth=False, pixels=pixels)


def frame(number: int, place: api.RawPlace) -> api.Frame:
    return api.Frame("a", number, number, 0, number, False, b"", 0, 0, (), 0.0, TIMINGS, raw=place)


def picture(value: int) -> npt.NDArray[np.uint8]:
    return np.full((4, 6, 3), value, np.uint8)


def test_a_frame_can_be_read_until_its_slot_is_needed_again(tmp_path: Path) -> None:
    ring, reader = RawRing(tmp_path, frames(fps=3)), RawReader()
    place, *_ = [ring.write(number, picture(number)) for number in range(3)]
    for number in range(3):
        read = reader.read(frame(number, place))
        assert read is not None and np.array_equal(read, picture(number))
    ring.write(3, picture(3))
    assert reader.read(frame(0, place)) is None
    assert reader.read(frame(1, place)) is not None
    assert reader.read(msgspec.structs.replace(frame(3, place), raw=None)) is None
    ring.close()
    assert list(tmp_path.iterdir()) == []
    assert reader.read(frame(3, place)) is not None, "it is still mapped here"
    reader.close()
    assert reader.read(frame(3, place)) is None
    reader.close()


def test_a_frame_that_is_being_overwritten_is_nobodys(tmp_path: Path) -> None:
    ring, reader = RawRing(tmp_path, frames(fps=2)), RawReader()
    place = ring.write(0, picture(7))
    (shared,) = tmp_path.iterdir()
    with shared.open("r+b") as file:
        file.write(b"\xff" * 8)  # as the writer leaves it while it copies
    assert reader.read(frame(0, place)) is None
    ring.close()
    reader.close()


def test_frames_in_i420_are_read_as_rgb_of_the_models_size(tmp_path: Path) -> None:
    ring, reader = RawRing(tmp_path, frames(fps=2, pixels=Pixels.I420)), RawReader()
    drawn = np.zeros((4, 6, 3), np.uint8)
    drawn[:, :2], drawn[:, 2:4], drawn[:, 4:] = (255, 0, 0), (128, 128, 128), (224, 172, 138)
    planes = frames_to_yuv(torch.from_numpy(drawn).permute(2, 0, 1)[None], scale=2).view(12, 12).numpy()
    place = ring.write(0, planes)
    assert Path(place.ring).stat().st_size == 2 * (8 + 12 * 12), "half of RGB, at the size that is shown"
    read = reader.read(frame(0, place))
    assert read is not None and read.shape == (4, 6, 3)
    assert np.abs(read.astype(int) - drawn).max() <= 2
    ring.close()
    reader.close()


class Keeping(BlankEncoder):
    """Remembers the pictures it was given."""

    seen: list[npt.NDArray[np.uint8]] = []  # noqa: RUF012

    def encode(self, picture: npt.NDArray[np.uint8], pts: int, key: bool) -> EncodedFrame:
        self.seen.append(picture.copy())
        return super().encode(picture, pts, key)


def test_who_asks_gets_what_the_model_made_and_nobody_else_does(tmp_path: Path) -> None:
    async def scene() -> None:
        engine, _ = await started(steady(0.001), encoder=Keeping, raw=tmp_path)
        Keeping.seen.clear()
        reader, raw = RawReader(), Person(engine, "raw")
        read: list[npt.NDArray[np.uint8]] = []

        def hear(event: api.Event) -> None:
            if isinstance(event, api.Frame) and (copied := reader.read(event)) is not None:
                read.append(copied)
            Person.hear(raw, event)

        opened = await engine.open(api.Open("raw", "toy", 1, raw=True), hear)
        assert isinstance(opened, api.Opened)
        engine.post(api.EncodePrompt("raw", 1, raw.prompt))
        await asyncio.sleep(2)
        assert len(read) == len(raw.frames) > 40
        assert all(np.array_equal(a, b) for a, b in zip(read, Keeping.seen, strict=False))
        assert len({picture.tobytes() for picture in read}) > 5
        plain = Person(engine, "plain")
        await plain.open()
        await asyncio.sleep(1)
        assert plain.frames and all(frame.raw is None for _, frame in plain.frames)
        assert len(rings(tmp_path)) == 1
        engine.post(api.Close("raw"))
        await asyncio.sleep(1)
        assert rings(tmp_path) == []
        reader.close()
        await engine.close()

    run(scene())


@asynccontextmanager
async def remote() -> AsyncIterator[WorkerClient]:
    door = WorkerClient(
        WorkerSpec(("toy",), None, EngineSpec(), options={"toy": packed(ToySpec(fps=12))}), SystemClock()
    )
    await door.start()
    yield door
    await door.close()


async def test_raw_frames_cross_from_the_worker_and_from_the_one_after_it() -> None:
    async with remote() as door:
        reader, read, person = RawReader(), [], Person(door, "a")  # type: ignore[arg-type, var-annotated]

        def hear(event: api.Event) -> None:
            if isinstance(event, api.Frame):
                read.append(reader.read(event))
            if isinstance(event, api.ChunkCancelled):
                person.due = None
            person.hear(event)

        assert isinstance(await door.open(api.Open("a", "toy", 1, raw=True), hear), api.Opened)
        door.post(api.EncodePrompt("a", 1, person.prompt))
        await until(lambda: len(read) > 3, within=60)
        os.kill(door.pid, signal.SIGKILL)
        await until(lambda: door.deaths == 1, within=60)
        seen = len(read)
        await until(lambda: len(read) > seen + 3, within=120)
        assert all(picture is not None and picture.shape == (96, 160, 3) for picture in read)
        assert len(rings(door.folder)) == 1, "what the killed worker left is removed"
        reader.close()
