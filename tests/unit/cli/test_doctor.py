"""What the doctor finds, and what a log line looks like to a machine."""

import asyncio
import json
import logging
import socket
import threading
from pathlib import Path

from worldroom.cli.doctor import State, folder, http_port, stun_answers, udp_ports
from worldroom.cli.logs import JsonLines


def test_a_taken_port_is_wrong_and_a_free_one_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert http_port("127.0.0.1", port).state is State.WRONG
    assert http_port("127.0.0.1", port).state is State.OK


def test_a_range_of_ports_is_counted() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        assert udp_ports((port, port)).state is State.WRONG
    assert udp_ports((port, port)).state is State.OK
    assert udp_ports(None).state is State.OK


def test_a_stun_server_answers_or_the_reason_is_said() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]

        def answer() -> None:
            request, sender = server.recvfrom(1500)
            server.sendto(b"\x01\x01\x00\x00" + request[4:20], sender)

        thread = threading.Thread(target=answer)
        thread.start()
        assert asyncio.run(stun_answers(f"stun:127.0.0.1:{port}")) is None
        thread.join()
    assert asyncio.run(stun_answers(f"turn:127.0.0.1:{port}?transport=tcp")) is not None
    assert asyncio.run(stun_answers(f"stun:127.0.0.1:{port}")) is not None


def test_a_folder_that_cannot_be_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert folder("data folder", tmp_path / "file" / "data").state is State.WRONG
    assert folder("data folder", tmp_path / "new" / "data").state is not State.WRONG


def test_a_log_record_is_one_json_object_a_line() -> None:
    record = logging.LogRecord("worldroom.rtc", logging.INFO, "f.py", 1, 'room "%s"\nopens', ("a",), None)
    line = JsonLines().format(record)
    assert "\n" not in line
    said = json.loads(line)
    assert (said["level"], said["logger"], said["message"]) == ("info", "worldroom.rtc", 'room "a"\nopens')
    assert said["time"].endswith("Z")
