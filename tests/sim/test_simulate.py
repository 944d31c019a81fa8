"""`worldroom simulate` from the command line to the engine: what it prints, what it reads, what it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.engine.api import LatencyClass, RefusalReason
from worldroom.engine.spec import EngineSpec
from worldroom.models.devices import H100
from worldroom.models.holding import DoesNotFit
from worldroom.simulation.crowd import hold
from worldroom.simulation.duty_cycle import crowd
from worldroom.simulation.figures import report
from worldroom.simulation.roofline import computed
from worldroom.simulation.simulation import Setup, play
from worldroom.simulation.trace import Act, Moment, Trace, Visit

MATRIX = "matrix-game-2-universal"


def simulate(*options: str) -> "tuple[int, str]":
    done = CliRunner().invoke(app, ["simulate", *options])
    return done.exit_code, done.output


def h100(*names: str, **spec: int) -> Setup:
    cards = tuple(computed(name, H100) for name in names or (MATRIX,))
    return Setup(cards, "h100", EngineSpec(slots=8, memory=H100.memory_gb * 10**9, **spec))


def stay(name: str, arrives: float, leaves: float, patience: float = 0.0, card: str = "") -> Visit:
    return Visit(name, LatencyClass.INTERACTIVE, arrives, leaves, (), patience, card)


def test_one_object_says_what_the_device_holds(tmp_path: Path) -> None:
    code, out = simulate(MATRIX, "--device", "h100", "--seconds", "60", "--json", "--plot", str(tmp_path / "a.svg"))
    assert code == 0, out
    said = json.loads(out)
    assert said["device"] == "h100"
    assert said["cards"][0]["holds"] == 2, "a chunk takes a third of its own length"
    assert 0.2 < said["utilisation"] < 1
    assert said["memory_most"] <= said["memory_budget"] < 80e9
    assert len(list(ElementTree.parse(tmp_path / "a.svg").getroot())) > 20


def test_tables_for_people_hold_every_card() -> None:
    code, out = simulate(f"{MATRIX},longlive-1.3b", "--device", "b200", "--seconds", "60")
    assert code == 0
    assert MATRIX in out and "longlive-1.3b" in out and "key to frame" in out


def test_a_trace_of_ones_own_is_read_and_a_broken_one_is_one_line(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_bytes(msgspec.json.encode(Trace("by hand", 30.0, (stay("a", 1.0, 20.0),))))
    code, out = simulate(MATRIX, "--device", "h100", "--trace", str(mine), "--json")
    assert code == 0 and json.loads(out)["trace"] == "by hand"
    mine.write_text('{"made_by": "", "seconds": 30, "visits": [{"session": "a"}]}')
    code, out = simulate(MATRIX, "--device", "h100", "--trace", str(mine))
    assert code == 2 and "is no trace" in out and "Traceback" not in out


def test_what_cannot_be_simulated_is_one_line() -> None:
    for options, said in (
        (("nonsuch", "--device", "h100"), "no card 'nonsuch'"),
        ((MATRIX, "--device", "h100000"), "no device and no file 'h100000'"),
        (("toy", "--device", "h100"), "has no footprint"),
        ((MATRIX, "--device", "epyc-core"), "holds prices of drive"),
        ((MATRIX, "--device", "h100", "--trace", "nowhere.json"), "no trace 'nowhere.json'"),
    ):
        code, out = simulate(*options)
        assert code == 2 and said in " ".join(out.split()), out


def test_who_does_not_fit_waits_in_line_as_long_as_patience_lasts() -> None:
    visits = (stay("a", 0, 30), stay("b", 1, 60), stay("c", 2, 60, patience=60), stay("d", 3, 60, patience=5))
    played = play(h100(), Trace("here", 60.0, visits))
    first, second, waiting, hasty = played.people
    assert first.entered is not None and second.entered is not None
    assert waiting.entered is not None and 27 < waiting.waited < 35
    assert hasty.entered is None and hasty.refused is RefusalReason.NO_COMPUTE
    assert max(sample.waiting for sample in played.samples) == 2


def test_admission_counts_what_the_weights_leave() -> None:
    """Three cards of 14 GB of weights and 7 GB a session take turns on 48 GB; 20 GB have room for none of them."""
    cards = tuple(computed(name, H100) for name in ("longlive-1.3b", "self-forcing-1.3b", "anyflow-far-1.3b"))
    trace = Trace("here", 30.0, tuple(stay(price.card.name, 1.0, 20.0, card=price.card.name) for price in cards[:1]))
    assert play(Setup(cards, "small", EngineSpec(slots=8, memory=48 * 10**9)), trace).people[0].chunks > 5
    with pytest.raises(DoesNotFit, match=r"not one session of 'longlive-1.3b' fits: weights 14\.5 GB"):
        play(Setup(cards, "smaller", EngineSpec(slots=8, memory=20 * 10**9)), trace)


def test_a_session_stays_on_its_card() -> None:
    visits = (stay("a", 0, 20, card="longlive-1.3b"), stay("b", 0, 20, card=MATRIX))
    people = play(h100(MATRIX, "longlive-1.3b"), Trace("here", 20.0, visits)).people
    assert [person.card for person in people] == ["longlive-1.3b", MATRIX]


def test_who_rests_makes_no_chunks() -> None:
    rest = (Moment(5.0, Act.REST), Moment(25.0, Act.WAKE))
    awake, resting = (
        play(h100(), Trace("here", 30.0, (Visit("a", LatencyClass.INTERACTIVE, 0.0, 30.0, moments),))).people[0]
        for moments in ((), rest)
    )
    assert awake.chunks > 50
    assert 15 < resting.chunks < 25


def test_a_crowd_grows_until_one_is_refused() -> None:
    held = hold(h100(), 40.0, 1)
    assert [row.people for row in held.rows] == [1, 2]
    assert held.refused == RefusalReason.NO_COMPUTE
    assert held.rows[1].utilisation > 1.5 * held.rows[0].utilisation


def test_one_encoder_thread_for_two_makes_frames_late() -> None:
    """25 frames a second of two people, 30 ms each."""
    fast = h100(encoder_threads=4)
    slow = replace(fast, cards=(replace(fast.cards[0], encode=0.03),), spec=replace(fast.spec, encoder_threads=1))
    one, other = (report(setup, play(setup, crowd(2, 30.0, 1))).cards[0] for setup in (fast, slow))
    assert one.keys.p50 < other.keys.p50
