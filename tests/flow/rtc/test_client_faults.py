"""The Python client where things are not as usual: certificates, addresses without a room, other seats, tokens."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fastapi import FastAPI
from worldroom.clients.python.room import join
from worldroom.clients.python.signalling import NoServer, RoomPlace, RoomRefused
from worldroom.clock import SystemClock
from worldroom.rtc.access.keys import ApiKey, ApiKeys
from worldroom.rtc.access.spec import AccessSpec, Tls
from worldroom.rtc.access.tokens import mint
from worldroom.rtc.http.server import EdgeServer
from worldroom.sessions.messages import Grant, Role
from worldroom.sessions.rooms.rights import Rights
from worldroom.tests.flow.rtc.conftest import Served, serving


@pytest.fixture
def certificate(tmp_path: Path) -> Tls:
    """Of 127.0.0.1, signed by itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime(2020, 1, 1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(private)
    return Tls(tmp_path / "cert.pem", tmp_path / "key.pem")


@pytest.fixture
async def https(certificate: Tls) -> AsyncIterator[str]:
    """A server that speaks TLS and makes rooms of one name."""
    app = FastAPI()

    @app.post("/v1/rooms", status_code=201)
    async def make() -> dict[str, str]:
        return {"room": "cup", "path": "/r/cup"}

    listener = socket.create_server(("127.0.0.1", 0))
    server = EdgeServer(app, certificate)
    task = asyncio.create_task(server.until_signal(listener))
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    yield f"https://localhost:{listener.getsockname()[1]}"
    server.should_exit = True
    await task
    listener.close()


async def test_case_75_a_certificate_nobody_vouches_for_is_named_and_can_be_trusted(
    https: str, certificate: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(NoServer, match=r"certificate of https://localhost:\d+ is not trusted.*--cacert"):
        await RoomPlace.of(https).named()
    assert (await RoomPlace.of(https, cacert=certificate.certificate).named()).room == "cup"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
    assert (await RoomPlace.of(https).named()).room == "cup"
    with pytest.raises(NoServer, match="cannot read the certificates"):
        await RoomPlace.of(https, cacert=Path("/no/such.pem")).named()
    assert isinstance(ssl.create_default_context(), ssl.SSLContext)


async def test_case_76_the_address_of_a_server_is_enough(served: Served) -> None:
    async with join(served.base, loopback=True, decode=False) as room:
        assert room.welcome is not None
        assert room.welcome.room == served.rooms.views()[0].room
        assert room.welcome.role is Role.DRIVER


async def test_case_112_two_clients_of_one_seat_do_not_fight_for_it(served: Served) -> None:
    own, other = (join(served.url, loopback=True, decode=False) for _ in range(2))
    async with own as first, other as second:
        second.token = first.token
        assert second.link is not None
        second.link.end()  # it comes back, and takes the first one's seat
        with pytest.raises(RoomRefused, match="taken over") as ended:
            async for _ in first.frames():
                pass
        assert (ended.value.code, ended.value.retry_after_s) == ("taken_over", None)
        assert (first.counts.reconnects, second.counts.reconnects) == (0, 1)


async def test_case_112_a_world_that_has_ended_is_not_opened_again(served: Served) -> None:
    async with join(served.url, loopback=True, decode=False) as room:
        await served.rooms.close()
        with pytest.raises(RoomRefused) as ended:
            async for _ in room.frames():
                pass
        assert ended.value.code == "room_closed" and room.counts.reconnects == 0


async def test_a_token_in_the_address_opens_the_room_as_who_it_says(web_root: Path) -> None:
    key = ApiKey("studio", "s" * 40)
    async with serving(web_root, access=AccessSpec(keys=ApiKeys([key]))) as served:
        with pytest.raises(RoomRefused, match="no_token"):
            async with join(served.url, loopback=True, decode=False):
                pass
        rights = Rights(Grant.SPECTATOR, "ada", "Ada", "team 3")
        token = mint(key, "test", rights, SystemClock().wall())
        async with join(f"{served.url}#token={token}", loopback=True, decode=False) as room:
            assert room.welcome is not None and room.welcome.role is Role.SPECTATOR
            assert room.participants is not None
            assert [(p.name, p.grant, p.metadata) for p in room.participants.people] == [
                ("Ada", Grant.SPECTATOR, "team 3")
            ]
