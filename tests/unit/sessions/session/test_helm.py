"""What several drivers press, put together: by control, by vote, and for several players."""

from msgspec.structs import replace
from worldroom.engine import api
from worldroom.sessions.messages import Input
from worldroom.sessions.session.helm import Hand, Helm
from worldroom.tests.fake_door import CARD

WORLD = replace(
    CARD,
    controls=(
        api.ControlInfo("left", ("KeyA",)),
        api.ControlInfo("right", ("KeyD",)),
        api.ControlInfo("throttle", ("KeyW",), analog=True),
    ),
)


class Table:
    """Drivers of one world, each with an inbox of their own."""

    def __init__(self, drivers: int, vote: bool = False, players: int = 1, own: tuple[set[int], ...] = ()) -> None:
        card = replace(WORLD, players=players)
        self.helm = Helm(card, vote)
        self.inboxes = [self.helm.inbox() for _ in range(drivers)]
        hands = (
            Hand(f"p{n}", inbox, n % players, frozenset(own[n] if own else {0, 1, 2}))
            for n, inbox in enumerate(self.inboxes)
        )
        self.helm.steer(tuple(hands))

    def hold(self, driver: int, *keys: str, throttle: float = 0.0, pointer: tuple[float, float] = (0.0, 0.0)) -> None:
        levels = ((2, throttle),) if throttle else ()
        self.inboxes[driver].receive(Input(driver + 1, keys, pointer=pointer, levels=levels), at=0.0)

    def controls(self) -> list[tuple[float, ...]]:
        return [player.controls for player in self.helm.sample().players]


def test_each_driver_presses_their_own_controls_alone() -> None:
    table = Table(2, own=({0, 1}, {2}))
    table.hold(0, "KeyA", "KeyW")
    table.hold(1, "KeyD")
    assert table.controls() == [(1.0, 0.0, 0.0)]
    table = Table(2, own=({0, 1}, {2}))
    table.hold(0, "KeyD")
    table.hold(1, "KeyW")
    assert table.controls() == [(0.0, 1.0, 1.0)]


def test_a_control_that_two_have_is_as_far_down_as_the_furthest_of_them_presses_it() -> None:
    table = Table(2)
    table.hold(0, throttle=0.25)
    table.hold(1, throttle=0.75)
    assert table.controls() == [(0.0, 0.0, 0.75)]


def test_a_vote_does_what_more_than_half_of_those_press_who_press_anything() -> None:
    table = Table(4, vote=True)
    table.hold(0, "KeyA")
    assert table.controls() == [(1.0, 0.0, 0.0)], "three abstain"
    table.hold(1, "KeyD")
    assert table.controls() == [(0.0, 0.0, 0.0)], "one against one"
    table.hold(2, "KeyD")
    assert table.controls() == [(0.0, 1.0, 0.0)]


def test_a_vote_presses_part_of_the_way_what_may_be_and_moves_by_the_average_of_who_moves() -> None:
    table = Table(3, vote=True)
    table.hold(0, throttle=1.0, pointer=(0.2, 0.0))
    table.hold(1, throttle=0.5, pointer=(0.4, -0.1))
    sample = table.helm.sample()
    assert sample.players[0].controls == (0.0, 0.0, 0.75)
    assert [round(axis, 6) for axis in sample.players[0].pointer] == [0.3, -0.05]


def test_motion_of_several_hands_adds_up() -> None:
    table = Table(2)
    table.hold(0, pointer=(0.25, 0.0))
    table.hold(1, pointer=(0.25, 0.5))
    assert table.helm.sample().players[0].pointer == (0.5, 0.5)


def test_each_player_of_a_card_has_the_controls_of_their_own() -> None:
    table = Table(2, players=2)
    table.hold(0, "KeyA")
    table.hold(1, "KeyD", throttle=0.5)
    assert table.controls() == [(1.0, 0.0, 0.0), (0.0, 1.0, 0.5)]


def test_what_a_cancelled_chunk_took_is_everybodys_again() -> None:
    table = Table(2, own=({0, 1}, {2}))
    table.hold(0, pointer=(0.5, 0.0))
    table.hold(1, pointer=(0.0, 0.25))
    taken = table.helm.sample()
    assert table.helm.sample().players[0].pointer == (0.0, 0.0)
    taken.give_back()
    assert table.helm.sample().players[0].pointer == (0.5, 0.25)


def test_with_nobody_there_every_key_is_up() -> None:
    assert Table(0, players=2).controls() == [(0.0, 0.0, 0.0), (0.0, 0.0, 0.0)]
