"""RTP bytes: payloads, headers, extensions, retransmission."""

import struct

import pytest
from aiortc.rtp import RtpPacket, unpack_header_extensions, unwrap_rtx
from worldroom.rtc.media.packets import (
    ABS_SEND_TIME_URI,
    MID_URI,
    PLAYOUT_DELAY_URI,
    HeaderPlan,
    Sent,
    SentPackets,
    abs_send_time,
    ntp_time,
    payloads_of,
    playout_delay,
    retransmission,
)
from worldroom.rtc.media.transport_feedback import TRANSPORT_CC_URI

SPS, PPS = b"\x67\x42\xe0\x1f\xaa", b"\x68\xce\x3c\x80"
START = b"\x00\x00\x00\x01"


def test_playout_delay_is_two_times_twelve_bits_of_ten_milliseconds() -> None:
    assert playout_delay(0, 0) == b"\x00\x00\x00"
    assert playout_delay(100, 1000) == b"\x00\xa0\x64"
    with pytest.raises(ValueError, match=r"100\.\.50"):
        playout_delay(100, 50)


def test_parameter_sets_travel_together_and_a_large_picture_in_fragments() -> None:
    idr = b"\x65" + bytes(range(1, 251)) * 12
    payloads = payloads_of(START + SPS + START + PPS + START + idr)
    assert payloads[0][0] & 0x1F == 24
    assert all(payload[0] & 0x1F == 28 and len(payload) <= 1300 for payload in payloads[1:])
    assert payloads[1][1] & 0x80 and payloads[-1][1] & 0x40
    assert b"".join(payload[2:] for payload in payloads[1:]) == idr[1:]


def test_a_frame_without_a_nal_unit_is_an_error() -> None:
    with pytest.raises(ValueError, match="no NAL unit"):
        payloads_of(b"\x00\x01")


IDS = {MID_URI: 1, ABS_SEND_TIME_URI: 3, PLAYOUT_DELAY_URI: 4}


def test_a_packet_as_aiortc_reads_it() -> None:
    plan = HeaderPlan.negotiated(99, 0xDEADBEEF, IDS, "0")
    now = ntp_time(1_000_000_000.5)
    packet = plan.packet(Sent(65535, 0xFFFFFFF0, True, b"payload"), plan.stamped(now))
    read = RtpPacket.parse(packet)
    assert (read.payload_type, read.marker, read.sequence_number) == (99, 1, 65535)
    assert (read.timestamp, read.ssrc, read.payload) == (0xFFFFFFF0, 0xDEADBEEF, b"payload")
    profile, words = struct.unpack_from("!HH", packet, 12)
    values = dict(unpack_header_extensions(profile, packet[16 : 16 + 4 * words]))
    assert values == {1: b"0", 3: abs_send_time(now).to_bytes(3, "big"), 4: b"\x00\x00\x00"}


def test_the_sending_time_and_the_transport_s_number_are_stamped_at_their_places() -> None:
    for ids in (
        IDS | {TRANSPORT_CC_URI: 5},
        {TRANSPORT_CC_URI: 5, MID_URI: 1, ABS_SEND_TIME_URI: 20},
        {TRANSPORT_CC_URI: 2},
    ):
        plan, now = HeaderPlan.negotiated(99, 1, ids, "0"), ntp_time(1_000_000_000.5)
        packet = plan.packet(Sent(7, 8, False, b"x"), plan.numbered(plan.stamped(now), 0xABCD))
        profile, words = struct.unpack_from("!HH", packet, 12)
        values = dict(unpack_header_extensions(profile, packet[16 : 16 + 4 * words]))
        assert values[ids[TRANSPORT_CC_URI]] == b"\xab\xcd" and len(values) == len(ids)
        if ABS_SEND_TIME_URI in ids:
            assert values[ids[ABS_SEND_TIME_URI]] == abs_send_time(now).to_bytes(3, "big")


def test_without_agreed_extensions_the_header_is_plain() -> None:
    plan = HeaderPlan.negotiated(99, 1, {}, "0")
    assert plan.packet(Sent(7, 8, False, b"x"), plan.stamped(0)) == b"\x80\x63\x00\x07\x00\x00\x00\x08\x00\x00\x00\x01x"


def test_an_extension_id_above_14_uses_the_two_byte_form() -> None:
    plan = HeaderPlan.negotiated(99, 1, {ABS_SEND_TIME_URI: 20, MID_URI: 1}, "0")
    packet = plan.packet(Sent(7, 8, False, b"x"), plan.stamped(1 << 14))
    profile, words = struct.unpack_from("!HH", packet, 12)
    assert dict(unpack_header_extensions(profile, packet[16 : 16 + 4 * words])) == {20: b"\x00\x00\x01", 1: b"0"}


def test_a_retransmission_carries_the_old_sequence_number_under_version_two() -> None:
    media = HeaderPlan.negotiated(99, 1111, IDS, "0")
    rtx = HeaderPlan.negotiated(100, 2222, IDS, "0")
    lost = Sent(sequence=500, timestamp=9000, marker=True, payload=b"payload")
    packet = rtx.packet(retransmission(77, lost), rtx.stamped(0))
    assert packet[0] >> 6 == 2
    read = RtpPacket.parse(packet)
    assert (read.sequence_number, read.ssrc, read.payload_type) == (77, 2222, 100)
    again = unwrap_rtx(read, payload_type=99, ssrc=media.ssrc)
    assert (again.sequence_number, again.timestamp, again.marker, again.payload) == (500, 9000, 1, b"payload")


def test_the_history_forgets_after_its_size_and_never_mixes_up() -> None:
    history = SentPackets(1024)
    for sequence in range(65000, 65000 + 2000):
        history.keep(Sent(sequence & 0xFFFF, 0, False, str(sequence).encode()))
    assert history.find(65000) is None
    kept = history.find((65000 + 1999) & 0xFFFF)
    assert kept is not None and kept.payload == b"66999"
    with pytest.raises(ValueError, match="1000"):
        SentPackets(1000)
