"""Behind a TURN server: Debian's coturn on loopback, reached over UDP or TCP alone, with credentials that expire."""

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from aioice import Candidate
from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCSessionDescription
from worldroom.rtc.media.ice_servers import IceServersSpec
from worldroom.tests.flow.rtc.conftest import serving
from worldroom.tests.flow.rtc.test_rtc_app import offer_body, post

pytestmark = pytest.mark.skipif(shutil.which("turnserver") is None, reason="needs Debian's coturn")
SECRET = "north"
Gather = Callable[..., Awaitable[list[Candidate]]]


@pytest.fixture
async def turn(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a TURN server that relays on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        "-n", "--no-cli", "--no-tls", "--no-dtls", "--allow-loopback-peers", "--use-auth-secret", "--realm=worldroom",
        f"--static-auth-secret={SECRET}", "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1",
        f"--listening-port={port}", f"--pidfile={tmp_path}/turn.pid", "--log-file=stdout",
        f"--userdb={tmp_path}/turn.db",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        "turnserver", *options, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            await asyncio.sleep(0.05)
    yield f"127.0.0.1:{port}"
    process.terminate()
    await process.wait()


def relay_only(pc: RTCPeerConnection) -> None:
    """Gather no address of this machine, as behind a firewall that lets nothing else through."""
    for transport in pc._RTCPeerConnection__iceTransports:  # type: ignore[attr-defined]
        connection = transport.iceGatherer._connection
        gather = connection.get_component_candidates

        async def none_of_ours(component: int, addresses: list[str], gather: Gather = gather) -> list[Candidate]:
            found = await gather(component=component, addresses=["127.0.0.1"])
            return [candidate for candidate in found if candidate.type == "relay"]

        connection.get_component_candidates = none_of_ours


async def see_a_picture(base: str, frames_until, server: dict[str, object]) -> tuple[int, str]:  # type: ignore[no-untyped-def]
    """Width of the first picture, and what the offer's candidates are."""
    ice = RTCIceServer(server["urls"], server["username"], server["credential"])
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[ice]))
    pc.addTransceiver("video", direction="recvonly")
    relay_only(pc)
    await pc.setLocalDescription(await pc.createOffer())
    kinds = {line.split(" typ ")[1].split()[0] for line in pc.localDescription.sdp.split("\r\n") if " typ " in line}
    reply = await post(base, offer_body(pc.localDescription.sdp))
    await pc.setRemoteDescription(RTCSessionDescription(reply.json()["sdp"], "answer"))
    picture = asyncio.ensure_future(pc.getReceivers()[0].track.recv())
    await frames_until(picture.done, 300)
    await pc.close()
    return picture.result().width, ",".join(sorted(kinds))


@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_a_viewer_that_only_reaches_the_relay_plays(web_root: Path, turn: str, transport: str) -> None:
    ice = IceServersSpec(turn=(f"turn:{turn}?transport={transport}",), turn_secret=SECRET)
    async with serving(web_root, ice=ice) as served, httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        (server,) = (await http.get("/v1/rooms/test/ice")).json()["ice_servers"]
        assert await see_a_picture(served.base, served.frames_until, server) == (320, "relay")


async def test_a_relay_takes_no_credentials_of_another_secret(web_root: Path, turn: str) -> None:
    ice = IceServersSpec(turn=(f"turn:{turn}?transport=udp",), turn_secret="another")
    (server,) = ice.for_client("eve", 2_000_000_000.0)
    pc = RTCPeerConnection(RTCConfiguration([RTCIceServer(list(server.urls), server.username, server.credential)]))
    pc.addTransceiver("video", direction="recvonly")
    relay_only(pc)
    await pc.setLocalDescription(await pc.createOffer())
    assert " typ relay" not in pc.localDescription.sdp
    await pc.close()
