"""Settings from a file, the environment and flags: which one wins, and what is said of a wrong one."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from worldroom.cli import serve as command
from worldroom.cli.main import app
from worldroom.cli.serve_spec import ServeSpec
from worldroom.rtc.access.keys import ApiKey
from worldroom.rtc.access.spec import AddressLimits

KEY = ApiKey("studio", "s" * 40)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ServeSpec]:
    """What servers were asked for; none is started."""
    specs: list[ServeSpec] = []

    async def run_server(spec: ServeSpec, listener: object) -> None:
        specs.append(spec)

    monkeypatch.setattr("worldroom.cli.assemble.run_server", run_server)
    monkeypatch.setattr(command, "listen", lambda host, port: socket.socket())
    return specs


def run(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, words, env=env, auto_envvar_prefix="WORLDROOM")


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path, asked: list[ServeSpec]) -> None:
    file = tmp_path / "worldroom.toml"
    file.write_text('[serve]\nport = 1111\nlease = 7.0\nslots = 3\nallow-host = ["a.example", "b.example"]\n')
    done = run(
        "--config",
        str(file),
        "serve",
        "--port",
        "3333",
        env={"WORLDROOM_SERVE_SLOTS": "9", "WORLDROOM_SERVE_PORT": "2"},
    )
    assert done.exit_code == 0, done.output
    (spec,) = asked
    assert (spec.port, spec.engine.slots, spec.lease_seconds) == (3333, 9, 7.0)
    assert spec.access.hosts == ("a.example", "b.example")


def test_what_one_address_may_do_is_set_by_flags(asked: list[ServeSpec]) -> None:
    flags = "--requests-per-s 7 --requests-burst 8 --offers-per-s 3 --offers-burst 4 --address-viewers 5"
    done = run("serve", *flags.split())
    assert done.exit_code == 0, done.output
    assert asked[0].access.limits == AddressLimits(7.0, 8, 3.0, 4, 5)


def test_how_many_may_be_in_a_room_is_set_by_a_flag(asked: list[ServeSpec]) -> None:
    for words in ((), ("--seats", "64")):
        assert run("serve", *words).exit_code == 0
    assert [spec.seats for spec in asked] == [32, 64]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serve]\nprot = 1\n", "[serve] has no flag 'prot' (did you mean 'port'?)"),
        ("[sreve]\n", "there is no command 'sreve' (did you mean 'serve'?)"),
        ("[serve\n", "cannot read"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "worldroom.toml"
    file.write_text(text)
    done = run("--config", str(file), "serve")
    assert done.exit_code == 2 and said in done.output and "Traceback" not in done.output


def test_beyond_this_machine_a_server_asks_for_tokens_unless_it_is_told_to_be_open(asked: list[ServeSpec]) -> None:
    refused = run("serve", "--host", "0.0.0.0")
    assert refused.exit_code == 2 and "--api-key" in refused.output and asked == []
    assert run("serve", "--host", "0.0.0.0", "--open").exit_code == 0
    assert run("serve", "--host", "0.0.0.0", "--api-key", f"{KEY.name}:{KEY.secret}").exit_code == 0
    assert run("serve", "--host", "127.0.0.1").exit_code == 0
    assert [bool(spec.access.keys) for spec in asked] == [False, True, False]
    assert [spec.access.loopback for spec in asked] == [False, False, True]


def test_keys_come_from_the_environment_as_livekit_writes_them(asked: list[ServeSpec]) -> None:
    assert run("serve", env={"WORLDROOM_API_KEYS": f"studio: {'s' * 40}, two: {'t' * 40}"}).exit_code == 0
    assert asked[0].access.keys.holds("studio", "s" * 40) and asked[0].access.keys.holds("two", "t" * 40)


@pytest.mark.parametrize(
    "words",
    [
        ("--allow-origin", "example.com"),
        ("--trusted-proxy", "10.0.0.0/99"),
        ("--base-path", "world"),
        ("--api-key", "studio:short"),
        ("--tls-cert", "cert.pem"),
        ("--tls-cert", "/no/cert.pem", "--tls-key", "/no/key.pem"),
    ],
)
def test_a_wrong_option_is_one_line(words: tuple[str, ...]) -> None:
    done = run("serve", *words)
    assert done.exit_code == 2 and "Traceback" not in done.output and "short" not in done.output.replace("--", "")


def test_case_90_without_a_home_the_folders_that_are_named_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[ServeSpec]
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("WORLDROOM_DATA", raising=False)
    nowhere = run("serve", env={"XDG_DATA_HOME": ""})
    assert nowhere.exit_code == 2 and "no home folder" in nowhere.output
    assert run("serve", env={"XDG_DATA_HOME": str(tmp_path)}).exit_code == 0
    assert run("serve", env={"WORLDROOM_DATA": str(tmp_path / "own")}).exit_code == 0
    assert [spec.journal.data for spec in asked] == [tmp_path / "worldroom", tmp_path / "own"]


def test_a_token_is_made_for_one_room(monkeypatch: pytest.MonkeyPatch) -> None:
    key = f"{KEY.name}:{KEY.secret}"
    done = run("token", "cup", "--role", "co-driver", "--api-key", key)
    assert done.exit_code == 0 and done.output.count(".") == 2
    assert run("token", "cup").exit_code == 2
    assert "there are driver" in run("token", "cup", "--role", "king", "--api-key", key).output
