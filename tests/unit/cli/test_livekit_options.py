"""`serve --livekit-...`: what is asked for, and what is said when something is missing."""

from pathlib import Path

import pytest
import typer
from worldroom.cli.livekit import LiveKitOptions
from worldroom.rtc.access.keys import ApiKey
from worldroom.rtc.livekit.spec import LiveKitSpec


def test_without_a_url_there_is_none() -> None:
    assert LiveKitOptions(livekit_key="devkey", livekit_secret="secret").livekit() is None


def test_the_secret_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    wanted = LiveKitSpec("ws://livekit:7880", ApiKey("devkey", "secret"), "wss://sfu.example")
    asked = LiveKitOptions("ws://livekit:7880", "wss://sfu.example", "devkey", "secret")
    assert asked.livekit() == wanted
    file = tmp_path / "secret"
    file.write_text("secret\n")
    assert LiveKitOptions("ws://livekit:7880", "wss://sfu.example", "devkey", "", file).livekit() == wanted
    assert "secret" not in repr(wanted)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LiveKitOptions("http://livekit", "", "k", "s"), "is not an address"),
        (LiveKitOptions("ws://livekit", "", "k", ""), "--livekit-key, and WORLDROOM_LIVEKIT_SECRET"),
        (LiveKitOptions("ws://livekit", "", "", "s"), "needs --livekit-key"),
        (LiveKitOptions("ws://livekit", "", "k", "", Path("/nowhere")), "cannot read"),
    ],
)
def test_what_is_missing_is_one_line(options: LiveKitOptions, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        options.livekit()
    assert said in capsys.readouterr().err.replace("\n", " ")
