"""A key becomes a frame through every room of the house: edge, sessions, engine and the toy model, on loopback."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from worldroom.clients.python.markers import read
from worldroom.clients.python.measure import run_join
from worldroom.clients.python.pictures import RoomFrame
from worldroom.clients.python.room import join
from worldroom.clients.python.signalling import RoomRefused
from worldroom.models import catalog
from worldroom.rtc.wire import Role
from worldroom.tests.paths import ROOT
from worldroom.tests.real_rooms import edge

FRAMES_MAX = 200
README = ROOT / "README.md"


@pytest.fixture
async def base(web_root: Path) -> AsyncIterator[str]:
    async with edge(catalog.load("toy"), web_root) as address:
        yield address


async def test_a_key_shows_in_receipts_and_in_pixels_of_the_same_frame(base: str) -> None:
    frames: list[RoomFrame] = []
    async with join(f"{base}/r/lobby", loopback=True) as room:
        assert room.welcome is not None and room.welcome.role is Role.DRIVER
        left = room.welcome.controls[0]
        pressed = 0
        async for frame in room.frames():
            frames.append(frame)
            if len(frames) == 10:
                pressed = room.tap(left.keys[0])
            if pressed and frame.receipt is not None and frame.receipt.applied[0] == 1.0:
                break
            assert len(frames) < FRAMES_MAX
        applied = frames[-1]
        assert applied.receipt is not None and applied.receipt.input_seq >= pressed
        for frame in frames:
            marker = read(frame.picture) if frame.picture is not None else None
            assert marker is not None
            if frame.receipt is not None:
                assert (marker.chunk, marker.input_seq) == (frame.receipt.chunk, frame.receipt.input_seq)
        id = await room.prompt("a red desert", seconds=0.0)
        chunk = await asyncio.wait_for(room.applied(id), 30)
        assert chunk > applied.receipt.chunk


async def test_a_spectator_watches_the_same_world_and_a_returning_driver_finds_it(base: str) -> None:
    async with join(f"{base}/r/lobby", loopback=True, decode=False) as driver:
        async with join(f"{base}/r/lobby", role=Role.SPECTATOR, loopback=True) as spectator:
            assert driver.welcome is not None and spectator.welcome is not None
            assert spectator.welcome.session == driver.welcome.session
            assert spectator.welcome.role is Role.SPECTATOR
            async for frame in spectator.frames():
                if frame.receipt is not None:
                    break
        before = driver.welcome
        assert driver.link is not None
        driver.link.end()
        for _ in range(FRAMES_MAX):
            if driver.counts.reconnects == 1:
                break
            await asyncio.sleep(0.05)
        assert driver.welcome.resumed and driver.welcome.session == before.session
        assert driver.welcome.role is Role.DRIVER
        assert driver.welcome.chunk > before.chunk


async def test_the_readmes_client_runs_as_it_is_printed(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    program = code.replace("http://127.0.0.1:8080", base).replace("asyncio.run(main())", "")
    names: dict[str, Callable[[], Awaitable[None]]] = {}
    exec(compile(program, str(README), "exec"), names)
    await names["main"]()
    assert capsys.readouterr().out == "(384, 640, 3) (1.0, 0.0, 1.0, 0.0)\n"


async def test_case_67_a_control_is_pressed_by_its_name_and_a_key_of_no_control_is_refused_at_once(base: str) -> None:
    async with join(f"{base}/r/lobby", loopback=True) as room:
        with pytest.raises(ValueError, match=r"'Arrow Left!' presses nothing .* controls are left \(Arr"):
            room.press("Arrow Left!")
        seq = room.press("left")
        async for frame in room.frames():
            if frame.receipt is not None and frame.receipt.input_seq >= seq:
                assert frame.receipt.applied[0] == 1.0
                break
        assert room.counts.problems == 0


async def test_case_46_a_prompt_that_is_too_long_raises_with_the_limit(base: str) -> None:
    async with join(f"{base}/r/lobby", loopback=True, decode=False) as room:
        with pytest.raises(RoomRefused, match="this world takes 500 characters, these are 501"):
            await room.prompt("x" * 501)


async def test_case_66_who_does_not_drive_measures_no_motion_to_photon(base: str) -> None:
    async with join(f"{base}/r/lobby", loopback=True, decode=False):
        report = await run_join(f"{base}/r/lobby", seconds=0.5, loopback=True)
    assert report.role is Role.SPECTATOR
    assert (report.motion_to_photon_ms, report.pixel_motion_to_photon_ms) == (None, None)
    assert report.frames > 0
