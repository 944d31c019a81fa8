"""Pieces of a room's stream: ports, assembling packets into frames."""

import pytest
from aiortc.rtp import RtpPacket
from worldroom.clients.python.assembly import FrameAssembly
from worldroom.rtc.media.ice import HostPolicy, UdpPorts


class Stepped:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.t = 100.0

    def now(self) -> float:
        return self.t

    def wall(self) -> float:
        return self.t


def test_ports_are_handed_out_in_turn() -> None:
    ports = UdpPorts(5000, 5002)
    assert ports.in_turn() == [5000, 5001, 5002]
    ports.took(5001)
    assert ports.in_turn() == [5002, 5000, 5001]
    with pytest.raises(ValueError, match=r"5002\.\.5000"):
        UdpPorts(5002, 5000)


def test_loopback_is_for_viewers_of_this_machine() -> None:
    machine = ["192.0.2.7"]
    assert HostPolicy(loopback_only=True).addresses(machine, False) == ["127.0.0.1"]
    assert HostPolicy(loopback_only=False).addresses(machine, True) == ["127.0.0.1", "192.0.2.7"]
    assert HostPolicy(loopback_only=False).addresses(machine, False) == ["192.0.2.7"]


KEY, DELTA = b"\x00\x00\x00\x01\x67key", b"\x00\x00\x00\x01\x41pic"


def packet(sequence: int, timestamp: int, data: bytes, marker: bool) -> RtpPacket:
    made = RtpPacket(sequence_number=sequence & 0xFFFF, timestamp=timestamp, marker=int(marker))
    made._data = data  # type: ignore[attr-defined]
    return made


class Assembled:
    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes, bool]] = []
        self.clock = Stepped()
        self.assembly = FrameAssembly(lambda rtp, data, key: self.frames.append((rtp, data, key)), self.clock.now)

    def add(self, sequence: int, timestamp: int, data: bytes, marker: bool) -> bool:
        return self.assembly.add(packet(sequence, timestamp, data, marker))[0]


def test_a_frame_is_whole_at_its_marker() -> None:
    seen = Assembled()
    seen.add(65535, 10, KEY, False)
    assert seen.frames == []
    seen.add(0, 10, b"rest", True)
    seen.add(1, 20, DELTA, True)
    assert seen.frames == [(10, KEY + b"rest", True), (20, DELTA, False)]


def test_a_gap_filled_late_releases_everything_at_once() -> None:
    seen = Assembled()
    seen.add(1, 10, KEY, True)
    seen.add(3, 30, DELTA, True)
    seen.add(4, 40, DELTA, True)
    assert len(seen.frames) == 1
    seen.add(2, 20, DELTA, True)
    assert [rtp for rtp, _, _ in seen.frames] == [10, 20, 30, 40]
    seen.add(2, 20, DELTA, True)
    assert len(seen.frames) == 4


def test_it_starts_at_a_key_frame_and_asks_for_one_not_too_often() -> None:
    seen = Assembled()
    assert seen.add(1, 10, DELTA, True) is True
    assert seen.add(2, 20, DELTA, True) is False
    seen.clock.t += 0.31
    assert seen.add(3, 30, DELTA, True) is True
    seen.add(4, 40, KEY, True)
    assert seen.frames == [(40, KEY, True)]


def test_a_gap_that_stands_for_a_while_asks_for_a_key_frame_however_few_packets_come() -> None:
    seen = Assembled()
    seen.add(0, 0, KEY, True)
    asked = []
    for sequence in range(2, 14):
        seen.clock.t += 0.06
        asked.append(seen.add(sequence, sequence * 10, DELTA, True))
    assert asked.index(True) == 4 and asked.count(True) == 2
    seen.add(14, 140, KEY, True)
    assert [rtp for rtp, _, _ in seen.frames] == [0, 140]


def test_a_gap_that_stays_asks_for_a_key_frame_and_jumps_to_it() -> None:
    seen = Assembled()
    seen.add(0, 0, KEY, True)
    asks = sum(seen.add(sequence, sequence * 10, DELTA, True) for sequence in range(2, 60))
    assert asks == 1
    assert len(seen.frames) == 1
    seen.add(60, 600, KEY, True)
    seen.add(61, 610, DELTA, True)
    assert [rtp for rtp, _, _ in seen.frames] == [0, 600, 610]
    assert seen.assembly.skipped == 1
