"""The line: places are kept by name, forgotten when nobody asks with them, and there are only so many."""

from worldroom.engine.admission.rules import Demand
from worldroom.engine.admission.wait_queue import WaitQueue
from worldroom.engine.api import LatencyClass

NEED = Demand(LatencyClass.INTERACTIVE, chunk_price=0.01, chunk_seconds=0.04, bytes=100)


def line_of(*names: str, places_max: int = 64) -> WaitQueue:
    line = WaitQueue(places_max)
    for name in names:
        line.take(name, "toy", NEED, now=0.0)
    return line


def test_a_name_keeps_its_place_and_sees_who_is_in_front() -> None:
    line = line_of("a", "b", "c")
    assert [line.place(name, now=1.0) for name in "abc"] == [1, 2, 3]
    assert list(line.before("c", now=1.0)) == [("toy", NEED), ("toy", NEED)]
    assert list(line.before("a", now=1.0)) == []
    assert len(list(line.before("nobody", now=1.0))) == 3


def test_who_does_not_ask_again_is_forgotten_and_the_others_move_up() -> None:
    line = line_of("a", "b")
    line.attach("b")
    assert line.place("b", now=60.0) == 1
    assert line.place("a", now=60.0) == 0
    line.detach("b", now=60.0)
    assert line.place("b", now=64.9) == 1
    assert line.place("b", now=65.1) == 0


def test_who_gives_up_makes_room_and_the_line_is_bounded() -> None:
    line = line_of("a", "b", places_max=2)
    assert not line.take("c", "toy", NEED, now=1.0)
    line.leave("a")
    line.leave("a")
    assert line.take("c", "toy", NEED, now=1.0)
    assert (line.length(now=1.0), line.place("c", now=1.0)) == (2, 2)
