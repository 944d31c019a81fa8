"""A replay that people watch in a room: of a server that runs, or of one that is started for it."""

from collections.abc import Mapping
from urllib.parse import quote

import httpx
import msgspec

from ..engine.worker.devices import named
from ..models import catalog
from ..rtc.http.past_rooms import PlannedRoom, ReplayRoomAsk
from ..sessions.journal.script import MadeBy
from .access import AccessOptions
from .adapter_options import AdaptersSpec
from .engine_options import EngineOptions
from .journal_options import KeepOptions
from .journal_place import JournalPlace, reading
from .replaying import Weights, read_script
from .serve_spec import ReplayWish, ServeSpec

SLOTS = 2
"""One for the replay, and one for its next moment while the last one is left."""
ANSWER_S = 60.0
"""A long journal is read before the server answers."""


class NotShown(RuntimeError):
    """A server does not show the session again, and why; one line."""


class _Refusal(msgspec.Struct, frozen=True):
    """Whatever else a server says with it."""

    detail: str


async def ask(server: str, token: str | None, show: ReplayWish) -> str:
    """The address of a room of that server that opens as the replay, once somebody joins it. Raises `NotShown`."""
    base = server.rstrip("/")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    body = msgspec.json.encode(ReplayRoomAsk(chunk=show.first or None, prompt=show.words))
    try:
        async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=ANSWER_S) as http:
            reply = await http.post(f"{base}/v1/library/{quote(show.session, safe='')}/replay", content=body)
        if reply.status_code == 201:
            return f"{base}/r/{msgspec.json.decode(reply.content, type=PlannedRoom).room}"
        why = msgspec.json.decode(reply.content, type=_Refusal).detail
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotShown(f"no Worldroom server answers at {server}: {type(error).__name__}") from None
    except msgspec.MsgspecError:
        raise NotShown(f"what answers at {server} is no Worldroom server") from None
    raise NotShown(why)


async def served(place: JournalPlace, weights: Weights, given: Mapping[str, str], show: ReplayWish) -> ServeSpec:
    """A server of the session's folder with the card, and as that was served when it was recorded. Raises
    `replaying.FAULTS` and `NotShown`."""
    async with reading(place) as history:
        script = await read_script(history, show.session)
    made = [script.made(each) for each in script.epochs if each.chunks] or [MadeBy.of(script.opened)]
    keep, engine = KeepOptions(), EngineOptions()
    try:
        choice = catalog.card(script.opened.card, catalog.options(script.opened.card, given)).recipe.default
        choice = choice.in_mode(made[-1].mode)
    except ValueError as error:
        raise NotShown(f"another version made it: {error}") from None
    return ServeSpec(
        cards=(script.opened.card,),
        host="127.0.0.1",
        port=0,
        journal=place,
        retention=keep.retention(),
        latents=keep.latents(),
        devices=named(engine.devices, engine.workers),
        engine=engine.spec(SLOTS),
        steps=made[-1].steps or None,
        precision=made[-1].precision or None,
        inexact=not choice.exact,
        compiled=choice.compiled,
        invariant=choice.invariant,
        lease_seconds=60.0,
        loopback=False,
        udp_ports=None,
        options=given,
        checkpoint=weights.checkpoint,
        access=AccessOptions().spec("127.0.0.1"),
        adapters=AdaptersSpec(weights.adapters),
        shows=show,
    )
