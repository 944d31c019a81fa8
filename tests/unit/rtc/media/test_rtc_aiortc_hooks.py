"""The private names of aiortc 1.16 and aioice that the edge and the Python client hook into still exist."""

import inspect

import aioice.ice
import aiortc
from aiortc import RTCConfiguration, RTCPeerConnection
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpreceiver import RTCRtpReceiver
from aiortc.rtcrtpsender import RTCRtpSender


def test_the_version_is_the_one_these_hooks_were_read_in() -> None:
    assert aiortc.__version__.startswith("1.16.")


async def test_name_mangled_attributes() -> None:
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    transceiver = pc.addTransceiver("video", direction="sendrecv")
    names = (
        "rtp_started rtp_exited rtp_task mid packet_count octet_count ntp_timestamp rtp_timestamp lsr rtx_payload_type"
    )
    for name in names.split():
        assert hasattr(transceiver.sender, f"_RTCRtpSender__{name}"), name
    assert hasattr(transceiver.receiver, "_RTCRtpReceiver__jitter_buffer")
    assert hasattr(transceiver.receiver, "_RTCRtpReceiver__remote_bitrate_estimator")
    assert hasattr(transceiver, "_RTCRtpTransceiver__sender")
    assert hasattr(transceiver, "_offerDirection") and hasattr(transceiver, "_codecs")
    transport = transceiver.sender.transport
    for name in ("_tx_srtp", "_state", "_RTCDtlsTransport__rx_packets"):
        assert hasattr(transport, name), name
    connection = transport.transport.iceGatherer._connection
    for name in ("_nominated", "_protocols", "get_component_candidates", "_queue"):
        assert hasattr(connection, name), name
    for name in ("_connection", "_monitor", "_recv", "_send", "_RTCIceTransport__monitor_task"):
        assert hasattr(transport.transport, name), name
    for name in ("_RTCPeerConnection__iceTransports", "_RTCPeerConnection__remoteDescription"):
        assert hasattr(pc, name), name
    assert hasattr(transceiver, "_headerExtensions") and hasattr(transceiver, "_get_mline_index")
    await pc.close()


def test_overridden_methods_are_called_by_their_classes() -> None:
    source = inspect.getsource(RTCRtpSender)
    for call in ("self._run_rtp(", "self._send_keyframe()", "self._retransmit(", "self._send_rtcp("):
        assert call in source, call
    source = inspect.getsource(RTCPeerConnection)
    assert "self.__createTransceiver(" in source and "self.__createDtlsTransport()" in source
    assert "__jitter_buffer.add(packet)" in inspect.getsource(RTCRtpReceiver)
    assert "await self._handle_rtcp_data(data)" in inspect.getsource(RTCDtlsTransport)
    for read in ("self.__rx_packets += 1", "await self.transport._recv()", "await self.transport._send(data)"):
        assert read in inspect.getsource(RTCDtlsTransport), read
    assert "await self._queue.get()" in inspect.getsource(aioice.ice.Connection.recvfrom)
    assert "self.get_component_candidates(component=component, addresses=addresses)" in inspect.getsource(
        aioice.ice.Connection
    )
