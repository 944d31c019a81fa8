"""A window that plays: `worldroom play ADDRESS`. pygame shows the pictures and hears the keys, `join` does the rest.

arrow and letter keys, space, shift      the world's controls
Escape, or the window's cross            leave
"""

import asyncio

import numpy as np
import pygame

from .pictures import RoomFrame
from .room import RoomClient

NAMED = {
    pygame.K_UP: "ArrowUp",
    pygame.K_DOWN: "ArrowDown",
    pygame.K_LEFT: "ArrowLeft",
    pygame.K_RIGHT: "ArrowRight",
    pygame.K_SPACE: "Space",
    pygame.K_LSHIFT: "ShiftLeft",
    pygame.K_RSHIFT: "ShiftRight",
}
LOOK_S = 1 / 120


def code_of(key: int) -> str:
    """The KeyboardEvent.code that a pygame key stands for; '' = none that worlds use."""
    if key in NAMED:
        return NAMED[key]
    name = pygame.key.name(key)
    if len(name) != 1 or not name.isascii():
        return ""
    return f"Key{name.upper()}" if name.isalpha() else f"Digit{name}" if name.isdigit() else ""


class Window:
    """One room in one window. `frames`: pictures shown so far."""

    def __init__(self, room: RoomClient, scale: int) -> None:
        assert room.welcome is not None, "the room is joined"
        self._room, self._welcome = room, room.welcome
        self._keys = {key for control in self._welcome.controls for key in control.keys}
        pygame.display.init()
        size = (self._welcome.width * scale, self._welcome.height * scale)
        self._screen = pygame.display.set_mode(size, pygame.RESIZABLE)
        pygame.display.set_caption(f"{self._welcome.title} · {self._welcome.room}")
        self.frames = 0
        self.input_seq = 0

    async def play(self) -> None:
        """Until the window is closed; raises what `frames` raises when the room ends."""
        showing = asyncio.create_task(self._show())
        try:
            while not showing.done() and self._hear():  # noqa: ASYNC110  # pygame has no events to wait for
                await asyncio.sleep(LOOK_S)
            if showing.done():
                showing.result()
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            pygame.display.quit()

    def _hear(self) -> bool:
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE):
                return False
            if event.type in (pygame.KEYDOWN, pygame.KEYUP) and (code := code_of(event.key)) in self._keys:
                (self._room.press if event.type == pygame.KEYDOWN else self._room.release)(code)
            if event.type == pygame.WINDOWFOCUSLOST:
                for key in self._keys:
                    self._room.release(key)
        return True

    async def _show(self) -> None:
        async for frame in self._room.frames():
            self._draw(frame)

    def _draw(self, frame: RoomFrame) -> None:
        if frame.picture is None:
            return
        rgb_WHC = np.swapaxes(frame.picture.to_ndarray(format="rgb24"), 0, 1)
        picture = pygame.surfarray.make_surface(rgb_WHC)
        pygame.transform.scale(picture, self._screen.get_size(), self._screen)
        pygame.display.flip()
        self.frames += 1
        if frame.receipt is not None:
            self.input_seq = frame.receipt.input_seq
