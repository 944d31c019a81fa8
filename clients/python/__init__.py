"""The Python SDK: `async with worldroom.clients.python.join(url) as room`, send keys and prompts, iterate frames."""

from .pictures import RoomFrame
from .room import RoomClient, join
from .signalling import NoServer, RoomRefused

__all__ = ["NoServer", "RoomClient", "RoomFrame", "RoomRefused", "join"]
