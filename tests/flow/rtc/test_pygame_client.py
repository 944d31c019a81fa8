"""The pygame client plays: pictures in its window, its keys in the world."""

import asyncio

import pytest
from worldroom.clients.python.room import join
from worldroom.tests.flow.rtc.conftest import Served

pygame = pytest.importorskip("pygame")


async def test_a_key_in_the_window_is_in_a_picture_of_the_window(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    from worldroom.clients.python.play import Window

    async with join(served.url, loopback=True) as room:
        window = Window(room, scale=2)
        assert pygame.display.get_surface().get_size() == (640, 384)
        playing = asyncio.create_task(window.play())
        await served.frames_until(lambda: window.frames > 3, 200)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_UP))
        await served.frames_until(lambda: window.input_seq >= 1, 200)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))
        await playing
