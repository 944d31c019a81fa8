"""Several people drive one world: by control, by vote, as players of their own; and what the journal keeps of it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace
from worldroom.engine import api
from worldroom.models import catalog
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.family import packed
from worldroom.models.toy.card import ToySpec
from worldroom.sessions.drivers import DriversRule
from worldroom.sessions.journal import events
from worldroom.sessions.journal.replay import read, replay
from worldroom.sessions.messages import (
    Input,
    KeyEdge,
    Leave,
    Participants,
    PassWheel,
    PlaceView,
    ResetWorld,
    Role,
    Welcome,
)
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_door import CARD, FakeDoor, Screen
from worldroom.tests.fake_engine import toy
from worldroom.tests.flow.sessions.test_room_flows import House, beats, got, play
from worldroom.tests.real_rooms import Server, stream


def scene_of(drivers: str, scene: Callable[[House], Awaitable[None]], door: Callable[[], FakeDoor] = FakeDoor) -> None:
    play(scene, door, RoomsSpec(card="toy", drivers=DriversRule.read(drivers)))


def places(screen: Screen) -> tuple[PlaceView, ...]:
    return got(screen, Participants)[-1].places


def test_by_control_each_steers_their_own_and_is_told_which() -> None:
    async def scene(house: House) -> None:
        (one, first), (two, second), (three, third) = [await house.join() for _ in range(3)]
        assert got(third, Welcome)[0].drivers == "controls:throttle,left"
        assert [person.role for person in (one, two, three)] == [Role.DRIVER, Role.DRIVER, Role.SPECTATOR]
        assert places(third) == (PlaceView(one.participant, 0, (0,)), PlaceView(two.participant, 0, (1,)))
        one.receive(Input(seq=7, held=("KeyW", "KeyA")))
        await beats(3)
        assert first.frames[-1].controls == (1.0, 0.0), "the other control is not theirs"
        two.receive(Input(seq=3, held=("KeyA",)))
        await beats(3)
        assert first.frames[-1].controls == (1.0, 1.0)
        assert [screen.given[-1].seq for screen in (first, second, third)] == [7, 3, 7], "each hears of their own input"
        assert second.given[-1].hold_us > 0

    scene_of("controls:throttle,left", scene)


def test_what_nobody_is_there_for_the_first_driver_steers() -> None:
    async def scene(house: House) -> None:
        one, first = await house.join()
        assert places(first) == (PlaceView(one.participant, 0, (0, 1)), PlaceView(None, 0, (1,)))
        two, _ = await house.join()
        one.receive(Input(seq=1, held=("KeyA",)))
        await beats(3)
        assert first.frames[-1].controls == (0.0, 0.0)
        two.leave()
        await beats(3)
        assert first.frames[-1].controls == (0.0, 1.0), "while the other is away"
        again, _ = await house.join(token=two.token)
        await beats(3)
        assert again.role is Role.DRIVER and first.frames[-1].controls == (0.0, 0.0)
        again.receive(Leave(id=1))
        await beats(3)
        assert first.frames[-1].controls == (0.0, 1.0)

    scene_of("controls:2", scene)


def test_two_who_drive_exchange_their_controls() -> None:
    async def scene(house: House) -> None:
        (one, first), (two, _) = [await house.join() for _ in range(2)]
        one.receive(PassWheel(id=1, to=two.participant))
        assert [(place.holder, place.controls) for place in places(first)] == [
            (two.participant, (0,)),
            (one.participant, (1,)),
        ]
        changed = [(event.after, event.place) for event in house.journaled(events.DriverChanged)]
        assert changed[-1] == (two.participant, 0)

    scene_of("controls:2", scene)


def test_a_vote_does_what_most_want_and_the_journal_keeps_who_wanted_what() -> None:
    async def scene(house: House) -> None:
        people = [await house.join() for _ in range(4)]
        assert [person.role for person, _ in people] == [Role.DRIVER] * 3 + [Role.SPECTATOR]
        for (person, _), key in zip(people, ("KeyW", "KeyW", "KeyA", "KeyA"), strict=True):
            person.receive(Input(seq=1, held=(key,)))
        await beats(3)
        assert people[0][1].frames[-1].controls == (1.0, 0.0)
        people[1][0].receive(Input(seq=2, held=("KeyA",)))
        await beats(3)
        assert people[0][1].frames[-1].controls == (0.0, 1.0)
        begun = house.journaled(events.ChunkBegun)[-1]
        assert [(each.participant, each.seq, each.controls) for each in begun.drivers] == [
            (people[0][0].participant, 1, (1.0, 0.0)),
            (people[1][0].participant, 2, (0.0, 1.0)),
            (people[2][0].participant, 1, (0.0, 1.0)),
        ]
        assert begun.conditions.controls == (0.0, 1.0)

    scene_of("vote:3", scene)


def test_who_comes_to_a_shared_wheel_takes_nobodys_taps() -> None:
    async def scene(house: House) -> None:
        one, first = await house.join()
        await beats(3)
        tap = Input(seq=2, held=(), edges=())
        one.receive(replace(tap, edges=(KeyEdge(1, "KeyW", True), KeyEdge(2, "KeyW", False))))
        await house.join()
        await beats(3)
        assert sum(frame.controls[0] for frame in first.frames) == 1.0

    scene_of("controls:2", scene)


class DoorOfTwo(FakeDoor):
    """Its world has two players."""

    def cards(self) -> tuple[api.CardInfo, ...]:
        return (replace(CARD, players=2),)

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        opened = await super().open(command, events)
        return replace(opened, card=self.cards()[0]) if isinstance(opened, api.Opened) else opened


def test_each_player_of_a_card_has_controls_of_their_own() -> None:
    async def scene(house: House) -> None:
        (one, first), (two, second) = [await house.join() for _ in range(2)]
        assert places(first) == (PlaceView(one.participant, 0, (0, 1)), PlaceView(two.participant, 1, (0, 1)))
        one.receive(Input(seq=1, held=("KeyW",)))
        two.receive(Input(seq=4, held=("KeyA",), pointer=(0.5, 0.0)))
        await beats(3)
        assert first.frames[-1].controls == (1.0, 0.0, 0.0, 1.0)
        assert (first.given[-1].seq, first.given[-1].controls) == (1, (1.0, 0.0))
        assert (second.given[-1].seq, second.given[-1].controls) == (4, (0.0, 1.0))
        moved = [event.conditions.others[0].pointer for event in house.journaled(events.ChunkBegun)]
        assert (0.5, 0.0) in moved

    scene_of("turns", scene, DoorOfTwo)


def test_a_room_keeps_its_rule_and_one_that_the_world_cannot_have_is_refused() -> None:
    async def scene(house: House) -> None:
        vote, other = DriversRule.read("vote:2"), DriversRule.read("controls:left,fire")
        await house.join()
        screen = Screen()
        joined = await house.rooms.join("lobby", screen, None, None, drivers=other)
        assert isinstance(joined, Participant) and got(screen, Welcome)[0].drivers == "turns"
        refused = await house.rooms.join("second", Screen(), None, None, drivers=other)
        assert isinstance(refused, api.Refused)
        assert (refused.reason, refused.detail) == (
            api.RefusalReason.DRIVERS,
            "this world has no control 'fire': it has throttle, left",
        )
        screen = Screen()
        await house.rooms.join("second", screen, None, None, drivers=vote)
        assert got(screen, Welcome)[0].drivers == "vote:2"
        views = {view.room: (view.drivers, view.places_free) for view in house.rooms.views()}
        assert views == {"lobby": ("turns", 0), "second": ("vote:2", 1)}

    play(scene)


def duo() -> LoadedCard:
    return catalog.load("toy-duo", options=packed(ToySpec(sleeps=False)))


@pytest.mark.parametrize(
    ("card", "drivers"), [(toy, "controls:2"), (toy, "vote:3"), (duo, "turns"), (duo, "controls:2")]
)
def test_a_world_that_several_drove_replays_bit_for_bit(card: Callable[[], LoadedCard], drivers: str) -> None:
    async def main() -> None:
        server = Server()
        await server.start(card(), drivers=drivers)
        people = [await server.join() for _ in range(4)]
        keys = [control.keys[0] for control in server.engine.cards()[0].controls]
        for step in range(24):
            person, _ = people[step % 4]
            held = tuple(key for bit, key in enumerate(keys) if (step * 7 + 3) >> bit & 1)
            person.receive(Input(seq=step + 1, held=held, levels=((step % 4, 0.5),)))
            await asyncio.sleep(0.1)
            if step == 12:
                people[0][0].receive(ResetWorld(id=1))
            if step == 18:
                people[1][0].receive(Leave(id=1))
        journaled = server.events(people[0][1])
        begun = [event for event in journaled if isinstance(event, events.ChunkBegun)]
        assert len({event.conditions.pressed for event in begun}) > 2, "it was steered"
        assert any(len(event.drivers) > 1 for event in begun)
        opened = next(event for event in journaled if isinstance(event, events.SessionOpened))
        assert opened.drivers == ("" if drivers == "turns" else drivers)
        replayed = await replay(server.engine, await read(stream(journaled)), "again")
        assert replayed.chunks > 40 and replayed.mismatches == ()
        await server.stop()

    run(main())
