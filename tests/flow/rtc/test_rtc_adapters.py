"""Adapters at a real server: by the Python client, over HTTP, told to all; and the session played again with them."""

import asyncio
import hashlib
import json
import subprocess
from pathlib import Path

import httpx
import pytest
from worldroom.clients.bench.server import command
from worldroom.clients.python.room import join
from worldroom.clients.python.signalling import RoomRefused
from worldroom.rtc.wire import AdapterChoice, ServerMessage
from worldroom.sessions.journal import events
from worldroom.sessions.messages import AdaptersChanged
from worldroom.tests.lora_files import peft_file
from worldroom.tests.real_server import journaled, ready, served

CARD = "wan-tiny-random"
FOG = {"stack": [{"name": "fog"}]}
RAIN = {"stack": [{"name": "rain", "scale": 0.5}]}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "adapters"
    folder.mkdir()
    for seed, name in enumerate(("snow", "rain")):
        peft_file(folder / f"{name}.safetensors", seed, rank=4)
    return folder


def replay(session: str, data: Path, *more: str) -> tuple[int, str]:
    words = [command(), "replay", session, "--data", str(data), "--json", *more]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, check=False)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


async def made(data: Path, files: Path) -> str:
    """A session that swaps its stack three ways; its name."""
    told: list[ServerMessage] = []
    options = (
        "--card",
        CARD,
        "--adapters",
        str(files),
        "--slots",
        "1",
        "--fps",
        "4",
    )  # whatever else this machine does
    with served(data, 0, *options) as (process, base):
        async with asyncio.timeout(200):
            await ready(base)
            async with join(f"{base}/r/stop", loopback=True, patience=60.0, card=CARD) as room:
                assert room.welcome is not None and room.welcome.adapters == ("rain", "snow")
                session, room.on_message = room.welcome.session, told.append
                async for _ in room.frames():
                    break
                await room.applied(await room.adapt("snow"))
                with pytest.raises(RoomRefused, match="there is no adapter 'fog' here: there are rain, snow"):
                    await room.applied(await room.adapt("fog"))
                async with httpx.AsyncClient(base_url=base, timeout=60) as http:
                    bearer = {"Authorization": f"Bearer {room.token}"}
                    answer = await http.post("/v1/rooms/stop/adapters", json=RAIN, headers=bearer)
                    assert answer.status_code == 200, answer.text
                    first = answer.json()["chunk"]
                    wrong = await http.post(
                        "/v1/rooms/stop/adapters", json={"stack": [{"name": "fog"}]}, headers=bearer
                    )
                    assert (wrong.status_code, wrong.json()["code"]) == (422, "bad_adapter")
                await room.applied(await room.adapt(("rain", 1.0), ("snow", -0.5)))
                await room.applied(await room.adapt())
                async for frame in room.frames():
                    if frame.receipt is not None and frame.receipt.chunk > first + 2:
                        break
        process.terminate()
        process.wait()
    changed = [message.stack for message in told if isinstance(message, AdaptersChanged)]
    rain, snow = AdapterChoice("rain", 0.5), AdapterChoice("snow", 1.0)
    assert changed == [(snow,), (rain,), (AdapterChoice("rain", 1.0), AdapterChoice("snow", -0.5)), ()]
    begun = [event for event in await journaled(data, session) if isinstance(event, events.ChunkBegun)]
    with_rain = {event.chunk: event for event in begun}
    key = hashlib.sha256((files / "rain.safetensors").read_bytes()).hexdigest()
    assert [(share.key, share.scale) for share in with_rain[first].conditions.adapters] == [(key, 0.5)], (
        "as it answered"
    )
    return session


@pytest.mark.timeout(600)
def test_a_stack_is_swapped_by_the_client_and_over_http_and_replayed_bit_for_bit(tmp_path: Path, files: Path) -> None:
    data = tmp_path / "data"
    session = asyncio.run(made(data, files))
    code, said = replay(session, data, "--adapters", str(files))
    report = json.loads(said)
    assert (code, report["same"], report["different"]) == (0, True, 0) and report["chunks"] >= 5
    code, said = replay(session, data)
    assert code == 2 and "it was made with 2 adapters, give their folder as --adapters: missing are" in said
    (files / "snow.safetensors").unlink()
    code, said = replay(session, data, "--adapters", str(files))
    assert code == 2 and "not all of their files are in" in said, said
