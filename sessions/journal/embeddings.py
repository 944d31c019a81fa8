"""The embeddings of a session's prompts, made again from their texts: what a redacted journal keeps in their place."""

import asyncio

from ...engine import api
from .script import MadeBy, ReplayError, Script


async def embeddings(door: api.EngineClient, script: Script, session: str) -> dict[str, bytes]:
    """Every prompt's embedding by its key, made in a new session of that name. Raises `ReplayError` where an engine
    with other weights would make others, or the card's embeddings cannot be written down."""
    inbox: asyncio.Queue[api.Event] = asyncio.Queue()
    opened = script.opened
    ask = api.Open(session, opened.card, opened.seed, api.LatencyClass.BACKGROUND, steps=opened.steps or None)
    answer = await door.open(ask, inbox.put_nowait)
    if isinstance(answer, api.Refused):
        raise ReplayError(f"the engine refused a session: {answer.detail}")
    found = dict(script.embeddings)
    try:
        if not MadeBy.of(answer).same_as(MadeBy.of(opened)):
            raise ReplayError(f"recorded with {MadeBy.of(opened)}; these are {MadeBy.of(answer)}")
        for version, (key, text) in enumerate(script.texts.items(), 1):
            door.post(api.EncodePrompt(session, version, text, tell=True))
            found[key] = await _embedding(inbox, version, key)
    finally:
        door.post(api.Close(session=session))
    return found


async def _embedding(inbox: "asyncio.Queue[api.Event]", version: int, key: str) -> bytes:
    while True:
        match event := await inbox.get():
            case api.PromptEncoded() if event.version == version:
                if event.key != key:
                    raise ReplayError("this text encoder differs: a prompt has another key here")
                if not event.embedding:
                    raise ReplayError("this card's embeddings cannot be written down")
                return event.embedding
            case api.Fault():
                raise ReplayError(f"a prompt could not be encoded: {event.code}")
            case _:
                pass
