"""The way into a room by a LiveKit server: a pass to the room of the same name there."""

import secrets
from dataclasses import replace
from typing import Protocol

from fastapi import FastAPI, Request, Response

from ...sessions.rooms.rights import Rights
from ..livekit.spec import LiveKitCounts, LiveKitPass
from .answers import access_of, json_answer, named


class Invites(Protocol):
    """The rooms that are in LiveKit; their SDK is optional, so that this file does not import them."""

    def invite(self, room: str, rights: Rights) -> LiveKitPass: ...

    def counts(self) -> LiveKitCounts: ...


def add_livekit(app: FastAPI, livekit: Invites) -> None:
    @app.post("/v1/rooms/{room}/livekit")
    async def invite(room: str, request: Request) -> Response:
        """As whom the caller's token says; whoever has no identity gets one for this pass."""
        named(room)
        rights = access_of(request).rights
        if rights.identity is None:
            rights = replace(rights, identity=f"guest-{secrets.token_hex(4)}")
        return json_answer(livekit.invite(room, rights), 201)
