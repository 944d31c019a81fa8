"""The Python SDK: `async with worldroom.clients.python.join(url) as room`, send keys and prompts, iterate frames."""

from .link import NoServer, RoomRefused
from .pictures import RoomFrame
from .room import RoomClient, join

__all__ = ["NoServer", "RoomClient", "RoomFrame", "RoomRefused", "join"]
