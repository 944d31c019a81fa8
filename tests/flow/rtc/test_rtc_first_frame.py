"""A first frame over HTTP, by the Python client and by hand, against a real server with a tiny Wan world."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from worldroom.clients.python.room import join
from worldroom.clients.python.signalling import RoomRefused
from worldroom.models import catalog
from worldroom.rtc.wire import FirstFrameView
from worldroom.sessions.rooms.first_frames import UploadedMedia
from worldroom.tests.files import picture, video
from worldroom.tests.real_rooms import edge


@pytest.fixture
async def base(web_root: Path) -> AsyncIterator[str]:
    async with edge(catalog.load("wan-tiny-random"), web_root) as address:
        yield address


def png() -> bytes:
    return picture(UploadedMedia.PNG, np.random.default_rng(4).integers(0, 256, (48, 64, 3)).astype(np.uint8))


async def test_a_world_begins_from_a_picture_and_goes_on_from_a_film(base: str, tmp_path: Path) -> None:
    still, film = tmp_path / "still.png", tmp_path / "film.webm"
    still.write_bytes(png())
    film.write_bytes(video(UploadedMedia.WEBM, [5 * n for n in range(30)], fps=16))
    async with join(f"{base}/r/lobby", loopback=True, first_frame=still) as room:
        assert room.welcome is not None and room.welcome.first_frame == FirstFrameView(64, 48)
        chunks: dict[int, int] = {}
        async for frame in room.frames():
            if frame.receipt is not None and frame.receipt.epoch == 1:
                chunks[frame.receipt.chunk] = chunks.get(frame.receipt.chunk, 0) + 1
                if len(chunks) == 3:
                    break
        assert list(chunks.values())[:2] == [9, 12], "the first chunk of a world has 9 frames, every other 12"
        assert (await room.first_frame(film)).frames == 9
        async for frame in room.frames():
            if frame.receipt is not None and frame.receipt.epoch == 2:
                break
        text = tmp_path / "notes.txt"
        text.write_text("no picture")
        with pytest.raises(ValueError, match=r"a first frame is one of \.png"):
            await room.first_frame(text)
        text.rename(tmp_path / "notes.png")
        with pytest.raises(RoomRefused, match="these bytes are no image/png"):
            await room.first_frame(tmp_path / "notes.png")


async def test_every_refusal_of_an_upload_is_typed(base: str) -> None:
    async with join(f"{base}/r/lobby", loopback=True, decode=False) as room, httpx.AsyncClient(base_url=base) as http:

        async def post(media: str, token: str | None, body: bytes = png(), name: str = "lobby") -> tuple[int, str]:
            headers = {"Content-Type": media} | ({"Authorization": f"Bearer {token}"} if token else {})
            answer = await http.post(f"/v1/rooms/{name}/first_frame", content=body, headers=headers)
            return answer.status_code, answer.json()["code"]

        assert await post("image/png", None) == (401, "no_token")
        assert await post("image/png", "somebody") == (401, "no_place")
        assert await post("text/html", room.token) == (415, "media_type")
        assert await post("image/png", room.token, name="elsewhere") == (404, "no_room")
        assert await post("image/png", room.token, name="-") == (400, "bad_room")
        assert await post("image/png", room.token, b"nothing") == (422, "not_that_format")
        assert await post("image/png", room.token, bytes(9 << 20)) == (413, "too_large")
