"""Worlds that hand on I420, as cards do on a GPU: the same worlds as in RGB, in pictures a few levels off."""

import asyncio
from dataclasses import replace

import av
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.engine import Engine
from worldroom.engine.output import pixels as output_pixels
from worldroom.engine.output.encode import H264Encoder
from worldroom.engine.spec import EngineSpec
from worldroom.kernels import backend
from worldroom.models import catalog
from worldroom.models.contract.cache_key import key_of
from worldroom.models.contract.card import FrameSpec, Pixels
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import Outcome
from worldroom.models.parity.session import ChunkInput, ParitySession
from worldroom.models.shared.video.pictures import frames_of, frames_on
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, Person, steady, until

TINY = ("wan-tiny-random", "wan-tiny-clip", "matrix-game-tiny-random", "waypoint-tiny-random", "anyflow-tiny-random")


def loaded(name: str, pixels: Pixels) -> LoadedCard:
    """A tiny card, made to hand on these pixels whatever the device."""
    if name.startswith("anyflow"):
        pytest.importorskip("diffusers")
    family, card = catalog.family(name)
    card = replace(card, frame=replace(card.frame, pixels=pixels))
    return family.load(card, card.recipe.default, None)


def played(made: LoadedCard) -> list[Outcome[object]]:
    """Two chunks of it."""
    made.runtime.allocate(1)
    idle = (0.0,) * len(made.card.controls)
    given = [ChunkInput(idle, (0.0, 0.0), "a fox in snow")] * 2
    return list(ParitySession(made, 0, 3, given, made.runtime.encode_prompt).run())


@pytest.mark.parametrize("name", TINY)
def test_a_world_is_the_same_in_rgb_and_in_i420(name: str) -> None:
    rgb, i420 = loaded(name, Pixels.RGB), loaded(name, Pixels.I420)
    frame, planes = rgb.card.frame, i420.card.frame
    for number, (a, b) in enumerate(zip(played(rgb), played(i420), strict=True)):
        assert a.digest == b.digest
        assert a.frames.shape == frame.shape(opens=number == 0)
        assert b.frames.shape == planes.shape(opens=number == 0)
        for one, other in zip(a.frames, b.frames, strict=True):
            want = output_pixels.shown(one, frame).to_ndarray().astype(int)
            assert np.abs(want - other).mean() < 3


def watched(made: LoadedCard) -> tuple[list[str], list[NDArray[np.uint8]]]:
    """What came of one session: digests of its chunks, and its decoded stream."""

    async def scene() -> tuple[list[str], list[NDArray[np.uint8]]]:
        engine = Engine(
            (made,), LoopClock(asyncio.get_running_loop()), EngineSpec(), FakeDevice(steady(0.001)), H264Encoder
        )
        await engine.start()
        person = Person(engine, "a", controls=lambda chunk: ())
        assert isinstance(await person.open(made.card.name), api.Opened)
        await until(lambda: len(person.done) >= 3 and len(person.frames) >= 20)
        assert person.faults == []
        await engine.close()
        decoder = av.CodecContext.create("h264", "r")
        packets = [av.Packet(frame.data) for _, frame in person.frames[:20]]
        return person.digests()[:3], [each.to_ndarray() for packet in packets for each in decoder.decode(packet)]

    return run(scene())


def test_a_session_streams_i420() -> None:
    rgb, i420 = (watched(loaded("wan-tiny-random", pixels)) for pixels in (Pixels.RGB, Pixels.I420))
    assert rgb[0] == i420[0]
    assert len(rgb[1]) > 10
    for a, b in zip(rgb[1], i420[1], strict=True):
        assert a.shape == b.shape == (384 * 3 // 2, 512)
        assert np.abs(a.astype(int) - b).mean() < 3


def test_i420_is_made_where_its_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, gpu = FrameSpec(width=64, height=48, scale=1, fps=16, per_chunk=3), torch.device("meta")
    assert frames_on(frame, torch.device("cpu")) == frame
    monkeypatch.setattr(
        "worldroom.models.shared.video.pictures.choose",
        lambda like: backend.Choice(backend.Backend.TRITON if like.device == gpu else backend.Backend.TORCH, ""),
    )
    assert frames_on(frame, torch.device("cpu")).pixels is Pixels.RGB
    assert frames_on(frame, gpu) == replace(frame, pixels=Pixels.I420)
    assert frames_on(replace(frame, scale=4), gpu).pixels is Pixels.RGB


def test_a_picture_outside_its_range_is_clamped_in_both() -> None:
    frame = FrameSpec(width=4, height=4, scale=1, fps=16, per_chunk=1)
    bright = torch.full((1, 3, 4, 4), 7.5)
    assert (frames_of(bright, frame) == 255).all()
    (planes,) = frames_of(bright, replace(frame, pixels=Pixels.I420))
    assert planes.shape == (6, 4)
    assert (planes[:4] == 235).all() and (planes[4:] == 128).all()


def test_worlds_of_other_pixels_are_of_another_maker() -> None:
    rgb, i420 = (key_of(loaded("waypoint-tiny-random", pixels)) for pixels in (Pixels.RGB, Pixels.I420))
    assert rgb != i420
    assert rgb.differences(i420) == ("layout",)
