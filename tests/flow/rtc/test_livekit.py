"""Rooms in LiveKit: LiveKit's own SDKs, here and as the guest, meet on a small signalling server of ours."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from livekit import api, rtc
from worldroom.clock import SystemClock
from worldroom.rtc.access.keys import ApiKey
from worldroom.rtc.livekit import video
from worldroom.rtc.livekit.spec import LiveKitPass, LiveKitSpec, Topic, guest_pass, host_token, rights_of
from worldroom.rtc.wire import Input, Prompt, Receipt, Receipts, Role, ServerMessage, Welcome, decode_server, encode
from worldroom.sessions.messages import Accepted, Grant, Participants, Problem
from worldroom.sessions.rooms.rights import Rights
from worldroom.tests.flow.rtc.conftest import Served, serving
from worldroom.tests.livekit_server import LiveKitServer

KEY = ApiKey("devkey", "s" * 40)
PATIENCE_S = 20


class Guest:
    """A participant with LiveKit's Python SDK, as anybody would write one."""

    def __init__(self) -> None:
        self.room = rtc.Room()
        self.told: list[ServerMessage] = []
        self.pictures: list[tuple[int, int]] = []
        self._watching: set[asyncio.Task[None]] = set()
        self.room.on("data_received", self._heard)
        self.room.on("track_subscribed", self._seen)

    async def join(self, passed: LiveKitPass) -> None:
        options = rtc.RoomOptions(single_peer_connection=False)
        await asyncio.wait_for(self.room.connect(passed.url, passed.token, options), PATIENCE_S)

    async def say(self, message: Input | Prompt) -> None:
        topic = Topic.INPUT if isinstance(message, Input) else Topic.CONTROL
        await self.room.local_participant.publish_data(
            encode(message), reliable=topic.reliable, destination_identities=["worldroom"], topic=topic
        )

    def heard(self, kind: type[ServerMessage]) -> list[ServerMessage]:
        return [message for message in self.told if isinstance(message, kind)]

    @property
    def receipts(self) -> list[Receipt]:
        found: list[Receipt] = []
        for message in self.told:
            found += (
                (message,) if isinstance(message, Receipt) else message.items if isinstance(message, Receipts) else ()
            )
        return found

    @property
    def role(self) -> Role | None:
        told = self.heard(Participants)
        return told[-1].you if told else None

    def _heard(self, packet: rtc.DataPacket) -> None:
        self.told.append(decode_server(packet.data))

    def _seen(self, track: rtc.Track, *_: object) -> None:
        self._watching.add(asyncio.create_task(self._watch(track)))

    async def _watch(self, track: rtc.Track) -> None:
        async for event in rtc.VideoStream(track):
            self.pictures.append((event.frame.width, event.frame.height))

    async def leave(self) -> None:
        for task in self._watching:
            task.cancel()
        await self.room.disconnect()


@pytest.fixture
async def sfu() -> AsyncIterator[LiveKitServer]:
    server = LiveKitServer(KEY.name, KEY.secret)
    await server.start()
    yield server
    await server.stop()


@asynccontextmanager
async def bridged(web_root, sfu: LiveKitServer) -> AsyncIterator[Served]:
    async with serving(web_root, livekit=LiveKitSpec(sfu.url, KEY)) as served:
        frames = asyncio.create_task(served.engine.run())
        yield served
        frames.cancel()


async def invited(served: Served, room: str = "test") -> LiveKitPass:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        reply = await http.post(f"/v1/rooms/{room}/livekit")
    assert reply.status_code == 201, reply.text
    return LiveKitPass(**reply.json())


@asynccontextmanager
async def guest_in(web_root, sfu: LiveKitServer, pictures: int) -> AsyncIterator[tuple[Served, Guest]]:
    """A bridged server and a guest who has seen more than so many pictures of its room."""
    async with bridged(web_root, sfu) as served:
        guest = Guest()
        await guest.join(await invited(served))
        await until(lambda: len(guest.pictures) > pictures)
        yield served, guest
        await guest.leave()


async def metrics(served: Served) -> str:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        return (await http.get("/metrics")).text


async def until(true) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_livekit_guest_opens_a_room_sees_its_world_and_drives_it(web_root, sfu: LiveKitServer) -> None:
    async with bridged(web_root, sfu) as served:
        ada, bob = Guest(), Guest()
        await ada.join(await invited(served))
        await until(lambda: ada.heard(Welcome))
        welcome = ada.heard(Welcome)[0]
        assert isinstance(welcome, Welcome) and (welcome.room, welcome.role) == ("test", Role.DRIVER)
        await until(lambda: len(ada.pictures) > 5)
        assert ada.pictures[0] == (320, 192)
        await ada.say(Input(seq=1, held=("ArrowUp",)))
        await until(lambda: any(receipt.input_seq == 1 and receipt.applied[0] == 1.0 for receipt in ada.receipts))
        await ada.say(Prompt(id=7, text="snow"))
        await until(lambda: any(isinstance(told, Accepted) and told.id == 7 for told in ada.told))

        await bob.join(await invited(served))
        await until(lambda: bob.role is Role.SPECTATOR and len(bob.pictures) > 5)
        await bob.say(Input(seq=1, held=("ArrowLeft",)))
        await until(lambda: any(isinstance(told, Problem) and told.code == "not_driving" for told in bob.told))

        await ada.room.local_participant.publish_data("{", destination_identities=["worldroom"], topic=Topic.CONTROL)
        await until(lambda: any(isinstance(told, Problem) and told.code == "malformed" for told in ada.told))
        counted = await metrics(served)
        assert "worldroom_livekit_people 2.0" in counted and "worldroom_livekit_malformed_total 1.0" in counted

        await ada.leave()  # on purpose: the wheel is free at once, not after the lease or its eight seconds
        await until(lambda: served.rooms.views()[0].driver is False)
        await bob.leave()
        assert sfu.joins.count("worldroom") == 1, "one connection of ours for everybody"


async def test_frames_go_out_as_the_engine_made_them_and_feedback_comes_back(
    web_root, sfu: LiveKitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(video, "PictureTrack")
    async with guest_in(web_root, sfu, 10) as (served, _):
        track = sfu.rooms["test"].track
        assert track is not None and track.frames <= served.engine.frames
        assert len(served.engine.keys) <= 4, "one for each that asked, none for every frame"


async def test_a_room_that_is_open_here_is_a_room_there_and_two_are_two(web_root, sfu: LiveKitServer) -> None:
    async with bridged(web_root, sfu) as served:
        first, second = Guest(), Guest()
        await first.join(await invited(served, "one"))
        await second.join(await invited(served, "two"))
        await until(lambda: first.heard(Welcome) and second.heard(Welcome))
        assert {view.room for view in served.rooms.views()} == {"one", "two"}
        assert sfu.client("one", "worldroom") is not None and sfu.client("two", "worldroom") is not None
        await first.say(Prompt(id=1, text="snow"))
        await until(lambda: any(isinstance(told, Accepted) for told in first.told))
        assert not any(isinstance(told, Accepted) for told in second.told)
        await first.leave()
        await second.leave()


async def test_the_server_comes_back_by_itself_and_finds_everybody(web_root, sfu: LiveKitServer) -> None:
    async with guest_in(web_root, sfu, 5) as (served, guest):
        before = served.rooms.views()[0].session
        await sfu.cut("test", "worldroom")
        await until(lambda: sfu.joins.count("worldroom") == 2)
        seen = len(guest.pictures)
        await until(lambda: len(guest.pictures) > seen + 5)
        assert served.rooms.views()[0].session == before, "the same world goes on"
        assert served.rooms.views()[0].driver


async def test_a_watchers_token_drives_nothing(web_root, sfu: LiveKitServer) -> None:
    async with bridged(web_root, sfu) as served:
        await invited(served)
        spec = LiveKitSpec(sfu.url, KEY)
        watcher = Guest()
        await watcher.join(guest_pass(spec, "test", Rights(Grant.SPECTATOR, "eve"), SystemClock().wall()))
        await until(lambda: watcher.role is Role.SPECTATOR)
        await watcher.say(Input(seq=1, held=("ArrowUp",)))
        await until(lambda: sfu.rooms["test"].refused_packets == 1)
        assert served.rooms.views()[0].driver is False
        await watcher.leave()


async def test_an_sdk_that_takes_no_encoded_frames_gets_pictures(
    web_root, sfu: LiveKitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(rtc, "EncodedVideoSource")
    async with guest_in(web_root, sfu, 3) as (_, guest):
        assert len(guest.pictures) > 3


def test_tokens_are_those_of_livekit() -> None:
    spec = LiveKitSpec("ws://sfu", KEY, "wss://public")
    passed = guest_pass(spec, "test", Rights(Grant.CO_DRIVER, "ada", "Ada", "m"), SystemClock().wall())
    assert (passed.url, passed.identity, passed.host) == ("wss://public", "ada", "worldroom")
    claims = api.TokenVerifier(KEY.name, KEY.secret).verify(passed.token)
    assert (claims.identity, claims.name, claims.metadata, claims.attributes) == (
        "ada",
        "Ada",
        "m",
        {"role": "co-driver"},
    )
    assert claims.video is not None
    assert (claims.video.room, claims.video.room_join, claims.video.can_publish) == ("test", True, False)
    assert claims.video.can_publish_data and not claims.video.hidden
    host = api.TokenVerifier(KEY.name, KEY.secret).verify(host_token(spec, "test", SystemClock().wall()))
    assert host.identity == "worldroom" and host.video is not None and host.video.can_publish


@pytest.mark.parametrize(
    ("role", "may_send", "grant"),
    [
        (None, True, Grant.DRIVER),
        (None, False, Grant.SPECTATOR),
        ("co-driver", True, Grant.CO_DRIVER),
        ("driver", False, Grant.SPECTATOR),
        ("spectator", True, Grant.SPECTATOR),
        ("pilot", True, Grant.SPECTATOR),
    ],
)
def test_what_a_livekit_participant_may_do(role: str | None, may_send: bool, grant: Grant) -> None:
    assert rights_of("ada", "Ada", "", {} if role is None else {"role": role}, may_send) == Rights(grant, "ada", "Ada")
