"""The wheel of a room: who leaves gives it up, who is lost keeps it for seconds, who asks is heard."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace
from worldroom.engine import api
from worldroom.sessions.messages import (
    Accepted,
    Applied,
    Input,
    Leave,
    Participants,
    PassWheel,
    Problem,
    RefuseWheel,
    Role,
    Welcome,
)
from worldroom.sessions.rooms.participant import Participant
from worldroom.tests.fake_door import CARD, FakeDoor, Screen
from worldroom.tests.flow.sessions.test_room_flows import House, beats, codes, got, play


def last(screen: Screen) -> Participants:
    return got(screen, Participants)[-1]


async def two(house: House) -> tuple[Participant, Screen, Participant, Screen]:
    """A driver and somebody who watches."""
    driver, one = await house.join()
    watcher, other = await house.join()
    return driver, one, watcher, other


def test_case_59_a_driver_who_leaves_on_purpose_leaves_the_wheel() -> None:
    async def scene(house: House) -> None:
        driver, one, watcher, screen = await two(house)
        driver.receive(Leave(id=1))
        assert got(one, Accepted) == [Accepted(1)] and codes(one) == ["left"]
        assert (last(screen).driver, last(screen).wheel_in_s) == (None, None)
        assert [person.participant for person in last(screen).people] == [watcher.participant]
        watcher.receive(PassWheel(id=2))
        assert watcher.role is Role.DRIVER
        back, _ = await house.join(token=driver.token)
        assert back.participant != driver.participant, "the seat was given up"

    play(scene)


def test_case_59_a_lost_driver_keeps_the_wheel_for_eight_seconds() -> None:
    async def scene(house: House) -> None:
        driver, _, watcher, screen = await two(house)
        driver.leave()
        assert last(screen).wheel_in_s == 8.0
        await asyncio.sleep(7.9)
        again, _ = await house.join(token=driver.token)
        assert again.role is Role.DRIVER and last(screen).wheel_in_s is None
        again.leave()
        await asyncio.sleep(8.1)
        assert (last(screen).driver, last(screen).wheel_in_s) == (driver.participant, 0.0)
        watcher.receive(PassWheel(id=1))
        watcher.receive(Input(seq=1, held=("KeyW",)))
        await beats(3)
        assert watcher.role is Role.DRIVER
        assert screen.frames[-1].controls == (1.0, 0.0)
        late, _ = await house.join(token=driver.token)
        assert late.role is Role.SPECTATOR

    play(scene)


def test_a_lost_driver_whom_nobody_relieves_still_drives_within_the_lease() -> None:
    async def scene(house: House) -> None:
        driver, _, _, _ = await two(house)
        driver.leave()
        await asyncio.sleep(50.0)
        again, _ = await house.join(token=driver.token)
        assert again.role is Role.DRIVER

    play(scene)


def test_who_asks_is_seen_by_the_driver_and_gets_the_wheel_when_it_is_granted() -> None:
    async def scene(house: House) -> None:
        driver, one, watcher, screen = await two(house)
        watcher.receive(PassWheel(id=7))
        watcher.receive(PassWheel(id=8))
        assert last(one).asking == (watcher.participant,) and watcher.role is Role.SPECTATOR
        assert got(screen, Accepted) == [Accepted(7), Accepted(8)] and got(screen, Applied) == []
        driver.receive(PassWheel(id=1, to=watcher.participant))
        assert watcher.role is Role.DRIVER and last(one).asking == ()
        assert [applied.id for applied in got(screen, Applied)] == [7]

    play(scene)


def test_who_is_refused_hears_of_it_and_may_ask_again() -> None:
    async def scene(house: House) -> None:
        driver, one, watcher, screen = await two(house)
        watcher.receive(PassWheel(id=7))
        driver.receive(RefuseWheel(id=1, to=watcher.participant))
        assert got(screen, Problem) == [Problem("wheel_refused", "the driver keeps the wheel", 7)]
        assert last(screen).asking == ()
        driver.receive(RefuseWheel(id=2, to=watcher.participant))
        assert codes(one) == ["not_asking"]
        watcher.receive(PassWheel(id=8))
        watcher.receive(RefuseWheel(id=9, to=watcher.participant))
        assert last(one).asking == (), "the question was taken back"
        watcher.receive(RefuseWheel(id=10, to=driver.participant))
        assert codes(screen) == ["wheel_refused", "not_driving"]

    play(scene)


def test_an_idle_driver_who_is_asked_loses_the_wheel_and_a_busy_one_does_not() -> None:
    async def scene(house: House) -> None:
        driver, _, watcher, _ = await two(house)
        watcher.receive(PassWheel(id=1))
        for seq in range(1, 8):
            driver.receive(Input(seq=seq, held=("KeyW",)))
            await asyncio.sleep(10.0)
        assert driver.role is Role.DRIVER
        await asyncio.sleep(21.0)
        assert watcher.role is Role.DRIVER

    play(scene)


def test_who_asked_a_lost_driver_drives_without_asking_again() -> None:
    async def scene(house: House) -> None:
        driver, _, watcher, screen = await two(house)
        driver.leave()
        watcher.receive(PassWheel(id=1))
        assert watcher.role is Role.SPECTATOR and codes(screen) == []
        await asyncio.sleep(8.1)
        assert watcher.role is Role.DRIVER

    play(scene)


def test_the_last_who_leaves_on_purpose_finds_the_world_again_within_the_lease() -> None:
    async def scene(house: House) -> None:
        driver, _ = await house.join()
        driver.receive(Leave(id=1))
        await asyncio.sleep(30.0)
        assert house.rooms.views()[0].driver is False
        again, _ = await house.join(token=driver.token)
        assert again.participant == driver.participant

    play(scene)


class DoorOfTwo(FakeDoor):
    """Its world has two players."""

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        opened = await super().open(command, events)
        return replace(opened, card=replace(CARD, players=2)) if isinstance(opened, api.Opened) else opened


def test_as_many_drive_as_the_card_has_players() -> None:
    async def scene(house: House) -> None:
        (one, first), (two, _), (three, third) = [await house.join() for _ in range(3)]
        assert got(first, Welcome)[0].players == 2
        assert [person.role for person in (one, two, three)] == [Role.DRIVER, Role.DRIVER, Role.SPECTATOR]
        told = last(third)
        assert (told.driver, told.drivers, told.spectators) == (
            one.participant,
            (one.participant, two.participant),
            1,
        )
        three.receive(PassWheel(id=1))
        assert last(third).asking == (three.participant,), "every place is held"
        two.receive(Leave(id=2))
        assert three.role is Role.DRIVER and last(third).drivers == (one.participant, three.participant)
        one.receive(PassWheel(id=3, to=three.participant))
        assert last(third).drivers == (three.participant, one.participant), "two who drive exchange their places"

    play(scene, DoorOfTwo)


def test_of_two_who_drive_the_one_who_is_away_loses_the_place() -> None:
    async def scene(house: House) -> None:
        (one, _), (two, _), (three, third) = [await house.join() for _ in range(3)]
        two.leave()
        assert last(third).wheel_in_s == 8.0
        await asyncio.sleep(8.1)
        three.receive(PassWheel(id=1))
        assert last(third).drivers == (one.participant, three.participant)
        again, _ = await house.join(token=two.token)
        assert again.role is Role.SPECTATOR

    play(scene, DoorOfTwo)
