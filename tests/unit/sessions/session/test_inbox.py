"""Presses become conditions: whatever the network does to the messages, a tap counts once."""

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st
from worldroom.engine.api import ControlInfo
from worldroom.sessions.messages import Input, KeyEdge
from worldroom.sessions.session.inbox import Inbox, keymap, partly

CONTROLS = (
    ControlInfo(name="throttle", keys=("KeyW", "ArrowUp")),
    ControlInfo(name="left", keys=("KeyA", "ArrowLeft")),
    ControlInfo(name="right", keys=("KeyD",)),
)


def inbox() -> Inbox:
    return Inbox(keymap(CONTROLS), len(CONTROLS))


def down(seq: int, key: str) -> KeyEdge:
    return KeyEdge(seq=seq, key=key, down=True)


def up(seq: int, key: str) -> KeyEdge:
    return KeyEdge(seq=seq, key=key, down=False)


def test_a_held_key_steers_every_chunk_until_it_is_released() -> None:
    box = inbox()
    box.receive(Input(seq=1, held=("KeyW",), edges=(down(1, "KeyW"),)), at=0.0)
    assert [box.sample().controls for _ in range(2)] == [(1.0, 0.0, 0.0)] * 2
    box.receive(Input(seq=2, held=(), edges=(down(1, "KeyW"), up(2, "KeyW"))), at=0.1)
    assert box.sample().controls == (0.0, 0.0, 0.0)


def test_a_tap_between_two_samples_shows_in_exactly_one_chunk() -> None:
    box = inbox()
    box.receive(Input(seq=2, held=(), edges=(down(1, "ArrowLeft"), up(2, "ArrowLeft"))), at=0.0)
    assert [box.sample().controls[1] for _ in range(3)] == [1.0, 0.0, 0.0]


def test_a_tap_over_a_sample_shows_in_exactly_one_chunk() -> None:
    box = inbox()
    box.receive(Input(seq=1, held=("KeyA",), edges=(down(1, "KeyA"),)), at=0.0)
    first = box.sample().controls[1]
    box.receive(Input(seq=2, held=(), edges=(down(1, "KeyA"), up(2, "KeyA"))), at=0.02)
    assert [first, box.sample().controls[1]] == [1.0, 0.0]


def test_the_newest_state_wins_over_one_that_arrives_late() -> None:
    box = inbox()
    box.receive(Input(seq=3, held=("KeyD",)), at=0.0)
    assert box.receive(Input(seq=2, held=("KeyA",)), at=0.1) is False
    assert box.sample().controls == (0.0, 0.0, 1.0)


def test_an_edge_that_only_the_late_message_carries_still_counts() -> None:
    box = inbox()
    box.receive(Input(seq=6, held=(), edges=(up(6, "KeyW"),)), at=0.0)
    box.receive(Input(seq=5, held=("KeyW",), edges=(down(5, "KeyW"),)), at=0.1)
    assert [box.sample().controls[0] for _ in range(2)] == [1.0, 0.0]


def test_lost_messages_lose_no_motion() -> None:
    box = inbox()
    box.receive(Input(seq=1, held=(), pointer=(0.25, 0.0)), at=0.0)
    assert box.sample().pointer == (0.25, 0.0)
    box.receive(Input(seq=4, held=(), pointer=(1.0, -0.5)), at=0.1)  # 2 and 3 were lost
    assert box.sample().pointer == (0.75, -0.5)
    assert box.sample().pointer == (0.0, 0.0)


def test_a_cancelled_chunk_gives_its_tap_and_motion_to_the_next() -> None:
    box = inbox()
    box.receive(Input(seq=2, held=(), edges=(down(1, "KeyW"), up(2, "KeyW")), pointer=(0.5, 0.0)), at=0.0)
    box.give_back(box.sample())
    again = box.sample()
    assert (again.controls, again.pointer) == ((1.0, 0.0, 0.0), (0.5, 0.0))
    assert box.sample().controls == (0.0, 0.0, 0.0)


def test_a_sample_knows_when_its_last_input_arrived() -> None:
    box = inbox()
    assert (box.sample().seq, box.sample().received) == (0, None)
    box.receive(Input(seq=7, held=()), at=12.5)
    assert (box.sample().seq, box.sample().received) == (7, 12.5)


def test_keys_that_the_card_does_not_know_steer_nothing() -> None:
    box = inbox()
    box.receive(Input(seq=1, held=("KeyQ",), edges=(down(1, "KeyQ"),)), at=0.0)
    assert box.sample().controls == (0.0, 0.0, 0.0)


def test_flush_forgets_taps_but_not_held_keys() -> None:
    box = inbox()
    edges = (down(1, "KeyA"), up(2, "KeyA"), down(3, "KeyD"))
    box.receive(Input(seq=3, held=("KeyD",), edges=edges, pointer=(0.5, 0.5)), at=0.0)
    box.flush()
    sample = box.sample()
    assert (sample.controls, sample.pointer) == ((0.0, 0.0, 1.0), (0.0, 0.0))


def test_memory_of_edges_and_receipts_is_bounded() -> None:
    box = inbox()
    sizes = {}
    for seq in range(1, 5000):
        box.receive(Input(seq=seq, held=(), edges=(down(seq, "KeyW"),)), at=float(seq))
        sizes[seq] = len(pickle.dumps(box))
    assert sizes[4999] <= 1.1 * sizes[500]
    assert box.received(1) is None
    assert box.received(4999) == 4999.0


# A client taps one key again and again. Every message carries the last edges; the network loses, doubles and reorders.
@st.composite
def _delivery(draw: st.DrawFn) -> tuple[list[Input], list[int]]:
    taps = draw(st.integers(1, 6))
    edges = [
        down(2 * i + 1, "KeyW") if not odd else up(2 * i + 2, "KeyW") for i in range(taps) for odd in (False, True)
    ]
    messages = [
        Input(seq=edge.seq, held=("KeyW",) if edge.down else (), edges=tuple(edges[max(0, i - 15) : i + 1]))
        for i, edge in enumerate(edges)
    ]
    order = draw(st.lists(st.integers(0, len(messages) - 1), max_size=20))
    order.append(len(messages) - 1)  # the newest arrives at some point, and with it every edge
    return messages, draw(st.permutations(order))


@given(_delivery())
@settings(max_examples=200, deadline=None)
def test_sampled_after_each_message_taps_are_neither_lost_nor_doubled(case: tuple[list[Input], list[int]]) -> None:
    messages, order = case
    box = inbox()
    pressed: list[float] = []
    for index in order:
        box.receive(messages[index], at=0.0)
        pressed.append(box.sample().controls[0])
    trailing = [box.sample().controls[0] for _ in range(3)]
    assert trailing == [0.0, 0.0, 0.0], "the newest state has arrived: nothing is held"
    assert 1 <= sum(pressed) <= len(order)
    newest = order.index(len(messages) - 1)
    assert sum(pressed[newest + 1 :]) == 0.0, "once all edges are seen, late and doubled messages press nothing"


@given(st.permutations(range(8)), st.lists(st.integers(0, 7), max_size=8))
@settings(max_examples=200, deadline=None)
def test_each_edge_arriving_alone_in_any_order_counts_each_tap_once(order: list[int], doubled: list[int]) -> None:
    """Four taps, each message carrying only its own edge, all arriving late: four chunks are pressed."""
    edges = [down(i + 1, "KeyW") if i % 2 == 0 else up(i + 1, "KeyW") for i in range(8)]
    messages = [Input(seq=edge.seq, held=(), edges=(edge,)) for edge in edges]
    box = inbox()
    pressed = 0.0
    for index in [*order, *doubled]:
        box.receive(messages[index], at=0.0)
        pressed += box.sample().controls[0]
    assert pressed == 4.0


@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=6))
def test_motion_sums_to_the_newest_pointer_in_any_order(order: list[int], doubled: list[int]) -> None:
    positions = [(0.25, 0.0), (0.5, 0.0), (0.5, 0.25), (0.75, 0.5), (0.25, 0.5), (1.0, 1.0)]
    messages = [Input(seq=i + 1, held=(), pointer=position) for i, position in enumerate(positions)]
    box = inbox()
    x = y = 0.0
    for index in [*order, *doubled]:
        box.receive(messages[index], at=0.0)
        motion = box.sample().pointer
        x, y = x + motion[0], y + motion[1]
    assert (x, y) == (1.0, 1.0)


def test_sticks_and_triggers_press_analog_controls_part_of_the_way_and_the_others_from_half_on() -> None:
    controls = (
        ControlInfo(name="left", keys=("KeyA",), analog=True),
        ControlInfo(name="right", keys=("KeyD",), analog=True),
        ControlInfo(name="jump", keys=("Space",)),
        ControlInfo(name="use", keys=("KeyE",)),
    )
    box = Inbox(keymap(controls), len(controls), partly(controls))
    box.receive(Input(seq=1, held=(), levels=((0, 0.3), (2, 0.49), (3, 0.5))), at=0.0)
    assert box.sample().controls == (0.3, 0.0, 0.0, 1.0)
    assert box.sample().controls == (0.3, 0.0, 0.0, 1.0), "a level stays until it changes"
    box.receive(Input(seq=2, held=("KeyA",), levels=((0, 0.3),)), at=0.1)
    assert box.sample().controls == (1.0, 0.0, 0.0, 0.0), "a key is the whole way"
    box.receive(Input(seq=3, held=(), levels=((63, 1.0),)), at=0.2)
    assert box.sample().controls == (0.0, 0.0, 0.0, 0.0), "a control that the card does not have"
