"""Real peers behind networks that lose, delay, reorder and are too slow. Gaps are counted in frames, not in seconds."""

import asyncio
import itertools

import pytest
from aioice.ice import Connection, get_host_addresses
from worldroom.clients.bench.network import Network, PathSpec, ShapedPath
from worldroom.clients.python.markers import read
from worldroom.clients.python.room import join
from worldroom.engine.api import Rendition
from worldroom.models import catalog
from worldroom.rtc.wire import Role
from worldroom.tests.real_rooms import behind_edge

HALF_A_SECOND = 12
"""Frames of the toy."""


@pytest.mark.parametrize("loss", [0.01, 0.05])
async def test_loss_delay_and_reordering_freeze_nothing_and_every_press_is_seen_once(tmp_path, loss: float) -> None:
    path = PathSpec(delay_ms=25, jitter_ms=5, loss=loss)
    network = Network(path, path, seed=7)
    async with (
        behind_edge(catalog.load("toy"), tmp_path) as (address, _),
        asyncio.timeout(60),
        join(f"{address}/r/lossy", loopback=True, shape=network.shape) as driver,
    ):
        numbers: list[int] = []
        contained: list[int] = []
        pressed: list[int] = []
        async for frame in driver.frames():
            if frame.receipt is not None:
                numbers.append(frame.receipt.frame)
            assert frame.picture is not None
            if (marker := read(frame.picture)) is not None:
                contained.append(marker.input_seq)
            if len(numbers) % 10 == 5 and len(pressed) < len(numbers) // 10 + 1:
                pressed.append(driver.tap("ArrowLeft"))
            if len(numbers) >= 100:
                break
        assert network.down.carried >= 100 and network.down.lost + network.up.lost >= 1
        gaps = [later - earlier for earlier, later in itertools.pairwise(numbers)]
        assert max(gaps) <= HALF_A_SECOND
        assert contained == sorted(contained), "no input is taken back"
        assert contained[-1] >= pressed[-2]


async def test_a_slow_viewer_watches_half_the_size_and_costs_the_driver_nothing(tmp_path) -> None:
    network = Network(PathSpec(delay_ms=5), PathSpec(delay_ms=5), seed=3)
    async with (
        behind_edge(catalog.load("toy"), tmp_path) as (address, edge),
        asyncio.timeout(90),
        join(f"{address}/r/slow", loopback=True) as driver,
        join(f"{address}/r/slow", loopback=True, shape=network.shape) as slow,
    ):
        driving, watching = driver.frames(), slow.frames()
        for _ in range(30):
            assert (await anext(watching)).picture.width == 640
        (stream,) = edge.streams().values()
        before = stream.kbps
        network.down = ShapedPath(PathSpec(delay_ms=5, loss=0.25), network.dice)
        numbers: list[int] = []
        looking = asyncio.create_task(_until_width(watching, 320))
        while not looking.done():
            frame = await anext(driving)
            assert frame.picture is not None and frame.picture.width == 640
            if frame.receipt is not None:
                numbers.append(frame.receipt.frame)
        await looking
        assert stream.watched()[Rendition.H264_LOW] == 1
        assert stream.kbps == before, "the driver's rate is the driver's"
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "the driver missed no frame"


async def _until_width(frames, width: int) -> None:
    while (await anext(frames)).picture.width != width:
        pass


IPV6 = [address for address in get_host_addresses(use_ipv4=False, use_ipv6=True) if not address.startswith("fe80")]


@pytest.mark.skipif(not IPV6, reason="needs an address of IPv6 that is not of one link alone")
async def test_a_viewer_that_speaks_ipv6_alone_plays(tmp_path) -> None:
    met: list[Connection] = []
    async with (
        behind_edge(catalog.load("toy"), tmp_path, loopback_only=False) as (address, _),
        asyncio.timeout(40),
        join(f"{address}/r/six", shape=lambda connection: met.append(_ipv6_alone(connection))) as viewer,
    ):
        frames = viewer.frames()
        for _ in range(5):
            assert (await anext(frames)).picture.width == 640
        (pair,) = met[0]._nominated.values()
        assert ":" in pair.local_candidate.host and ":" in pair.remote_candidate.host


def _ipv6_alone(connection: Connection) -> Connection:
    """Its sockets of IPv4 carry nothing."""
    for protocol in connection._protocols:
        if ":" not in protocol.local_candidate.host:
            Network(PathSpec(loss=1.0), PathSpec(loss=1.0)).shape_socket(protocol)
    return connection


async def test_a_network_that_changes_is_left_for_another_one_and_the_world_goes_on(tmp_path) -> None:
    networks: list[Network] = []

    def fresh(connection: Connection) -> None:
        networks.append(Network(PathSpec(), PathSpec()))
        networks[-1].shape(connection)

    async with (
        behind_edge(catalog.load("toy"), tmp_path) as (address, _edge),
        asyncio.timeout(60),
        join(f"{address}/r/moves", loopback=True, shape=fresh) as driver,
    ):
        frames = driver.frames()
        for _ in range(10):
            before = await anext(frames)
        networks[0].cut = True
        session, began = driver.welcome.session, driver.latency.frames
        driver.link.end()  # as a client does that is told of the change
        while driver.latency.frames == began or driver.welcome is None or driver.counts.reconnects == 0:
            after = await anext(frames)
        assert (driver.welcome.session, driver.welcome.resumed) == (session, True)
        assert before.receipt is not None and after.receipt is not None
        assert after.receipt.frame - before.receipt.frame <= 2 * 24, "two seconds of the world"


async def test_a_path_that_dies_without_a_word_is_noticed_and_the_seat_taken_again(tmp_path) -> None:
    network = Network(PathSpec(), PathSpec(), seed=2)
    async with (
        behind_edge(catalog.load("toy"), tmp_path) as (address, _),
        asyncio.timeout(30),
        join(f"{address}/r/quiet", loopback=True, decode=False, shape=network.shape) as driver,
    ):
        frames = driver.frames()
        for _ in range(10):
            before = await anext(frames)
        token, network_lost = driver.token, network.up.lost
        network.forget()
        async for after in frames:
            if driver.counts.reconnects == 1 and after.receipt is not None:
                break
        assert driver.welcome.role is Role.DRIVER and driver.token == token and driver.welcome.resumed
        assert network.up.lost > network_lost, "it asked before it gave up"
        assert after.receipt.chunk - before.receipt.chunk <= 60, "two seconds and a half of this world"
