"""A closed connection is let go piece by piece, so that the collector of garbage has little to do.

aiortc's parts refer to each other in circles, which only a full collection frees: 400 objects a connection, so that one
after 200 of them stood on the loop for 115 ms, and without these circles for 30.
"""

from aiortc import RTCPeerConnection


def let_go(connection: RTCPeerConnection) -> None:
    """Of a connection that was closed, and of which no task or timer is left: nothing of it can be used any more."""
    parts: list[object] = [connection]
    for transceiver in connection.getTransceivers():
        parts += (transceiver, transceiver.sender, transceiver.receiver)
    if connection.sctp is not None:
        parts.append(connection.sctp)
    for ice in connection._RTCPeerConnection__iceTransports:  # type: ignore[attr-defined]
        gathered = ice.iceGatherer._connection
        parts += (ice, ice.iceGatherer, gathered, *gathered._protocols)
    dtls = {transceiver.receiver.transport for transceiver in connection.getTransceivers()}
    for part in (*parts, *dtls):
        vars(part).clear()
