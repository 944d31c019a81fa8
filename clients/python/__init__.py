"""The Python SDK: `async with worldroom.clients.python.join(url) as room`, send keys and prompts, iterate frames."""

from .link import NoServer, RoomRefused
from .room import RoomClient, RoomFrame, join

__all__ = ["NoServer", "RoomClient", "RoomFrame", "RoomRefused", "join"]
