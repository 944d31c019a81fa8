"""An ICE restart under a DTLS session that goes on (RFC 8445, 9), which aiortc has not: another agent takes the place
of the one that a transport has.

    the one there is   pictures flow --------------------------.
    another one        gathers, is answered with, checks ..     `-- has a pair: is the transport's, the first is closed

Both put what they receive into one queue, from which DTLS reads, so nothing is lost between them.
"""

import asyncio

from aioice.ice import Connection
from aiortc import RTCIceServer
from aiortc.rtcicetransport import RTCIceTransport, connection_kwargs

CHECKS_S = 10.0
"""A restart that has no pair by then is given up; what there was goes on."""


def another_agent(transport: RTCIceTransport, ice_servers: list[RTCIceServer]) -> Connection:
    """In the same role, with a user fragment and password of its own."""
    present = transport._connection
    agent = Connection(ice_controlling=present.ice_controlling, **connection_kwargs(ice_servers))
    agent.remote_is_lite = present.remote_is_lite
    agent._queue = present._queue
    return agent


async def take_over(transport: RTCIceTransport, agent: Connection) -> None:
    """Find a pair for `agent`, which has gathered and knows the peer's fragment and password, and put it into
    `transport`; raises ConnectionError when there is none. Cancelled or not, an agent that did not get in is closed.
    """
    try:
        async with asyncio.timeout(CHECKS_S):
            await agent.connect()
    except TimeoutError:
        await dismiss(agent)
        raise ConnectionError("no pair of candidates got through") from None
    except BaseException:
        await dismiss(agent)
        raise
    before, transport._connection = transport._connection, agent
    transport.iceGatherer._connection = agent
    transport._recv, transport._send = agent.recv, agent.send
    transport._RTCIceTransport__monitor_task.cancel()  # type: ignore[attr-defined]
    transport._RTCIceTransport__monitor_task = asyncio.create_task(transport._monitor())  # type: ignore[attr-defined]
    await dismiss(before)


async def dismiss(agent: Connection) -> None:
    """Close it without the end in the queue, which would be the end of DTLS."""
    agent._queue = asyncio.Queue()
    await agent.close()
