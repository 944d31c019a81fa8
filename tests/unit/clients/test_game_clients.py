"""Clients of games: the vectors are what the server reads and writes, the pygame keys are a browser's, Godot parses."""

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from worldroom.rtc.http.vectors import exchange, vectors_json
from worldroom.rtc.wire import Channel, decode_client, decode_server, encode

ROOT = Path(__file__).resolve().parents[3]


def test_the_vectors_on_disk_are_the_ones_of_these_types() -> None:
    hint = "run: python -m worldroom.rtc.http.docs docs"
    assert (ROOT / "docs" / "game_client_vectors.json").read_text() == vectors_json(), hint


@pytest.mark.parametrize("vector", exchange(), ids=lambda vector: vector.why)
def test_each_text_is_read_and_written_again_the_same(vector) -> None:  # type: ignore[no-untyped-def]
    if vector.sent_by == "client":
        message = decode_client(vector.text, Channel(vector.channel))
    else:
        message = decode_server(vector.text)
    assert msgspec.json.decode(encode(message)) == msgspec.json.decode(vector.text)


def test_pygame_keys_are_the_keys_of_a_browser() -> None:
    pygame = pytest.importorskip("pygame")
    from worldroom.clients.python.play import code_of

    keys = (pygame.K_UP, pygame.K_w, pygame.K_1, pygame.K_SPACE, pygame.K_LSHIFT, pygame.K_F1, pygame.K_COMMA)
    assert [code_of(key) for key in keys] == ["ArrowUp", "KeyW", "Digit1", "Space", "ShiftLeft", "", ""]


def test_the_godot_script_is_godot_4() -> None:
    if shutil.which("gdparse") is None:
        pytest.skip("needs gdtoolkit")
    done = subprocess.run(["gdparse", ROOT / "clients" / "godot" / "worldroom.gd"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
