"""What tokens let people do in a room: who takes the wheel, who may ask, who is not seen."""

from worldroom.sessions.messages import (
    Applied,
    Feedback,
    Grant,
    Leave,
    Participants,
    PassWheel,
    Prompt,
    Role,
    Welcome,
)
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rights import Rights
from worldroom.tests.fake_door import Screen
from worldroom.tests.flow.sessions.test_room_flows import House, codes, got, play


async def come(
    house: House, grant: Grant, identity: str | None = None, token: str | None = None, want: Role | None = None
) -> tuple[Participant, Screen]:
    screen = Screen()
    rights = Rights(grant, identity, name=identity, metadata="m" if identity else "")
    joined = await house.rooms.join("lobby", screen, token, want, None, rights)
    assert isinstance(joined, Participant), joined
    return joined, screen


def test_only_a_driver_takes_a_free_wheel_by_coming() -> None:
    async def scene(house: House) -> None:
        for grant in (Grant.RECORDER, Grant.SPECTATOR, Grant.CO_DRIVER):
            joined, _ = await come(house, grant)
            assert joined.role is Role.SPECTATOR
        driver, _ = await come(house, Grant.DRIVER)
        assert driver.role is Role.DRIVER

    play(scene)


def test_a_spectator_and_a_recorder_never_get_the_wheel_neither_taken_nor_given() -> None:
    async def scene(house: House) -> None:
        driver, one = await come(house, Grant.DRIVER)
        watcher, screen = await come(house, Grant.SPECTATOR)
        watcher.receive(PassWheel(id=1))
        driver.receive(PassWheel(id=2, to=watcher.participant))
        assert codes(screen) == ["may_not_drive"] and codes(one) == ["may_not_drive"]
        driver.receive(Leave(id=3))
        watcher.receive(PassWheel(id=4))
        assert codes(screen) == ["may_not_drive"] * 2 and watcher.role is Role.SPECTATOR
        watcher.receive(Prompt(id=5, text="a storm"))
        assert codes(screen)[-1] == "not_driving"

    play(scene)


def test_a_co_driver_asks_a_driver_and_a_driver_takes_from_a_co_driver() -> None:
    async def scene(house: House) -> None:
        second, screen = await come(house, Grant.CO_DRIVER)
        second.receive(PassWheel(id=1))
        assert second.role is Role.DRIVER, "a free wheel may be taken"
        driver, _ = await come(house, Grant.DRIVER)
        assert driver.role is Role.SPECTATOR, "nobody is pushed aside by coming"
        driver.receive(PassWheel(id=2))
        assert driver.role is Role.DRIVER
        second.receive(PassWheel(id=3))
        assert second.role is Role.SPECTATOR and got(screen, Participants)[-1].asking == (second.participant,)
        driver.receive(PassWheel(id=4, to=second.participant))
        assert second.role is Role.DRIVER
        assert [applied.id for applied in got(screen, Applied)] == [1, 3]

    play(scene)


def test_a_recorder_is_seen_by_nobody_and_judges_nothing() -> None:
    async def scene(house: House) -> None:
        recorder, screen = await come(house, Grant.RECORDER, "archive")
        _, one = await come(house, Grant.DRIVER, "ada")
        told = got(one, Participants)[-1]
        assert [(person.name, person.grant, person.metadata) for person in told.people] == [("ada", Grant.DRIVER, "m")]
        assert told.spectators == 0
        assert got(screen, Participants)[-1].people == told.people, "it sees the others"
        recorder.receive(Feedback(id=1, chunk=0, value=1))
        assert codes(screen) == ["may_not_judge"]

    play(scene)


def test_an_identity_has_one_seat_and_what_its_last_token_says() -> None:
    async def scene(house: House) -> None:
        first, old = await come(house, Grant.DRIVER, "ada")
        again, new = await come(house, Grant.DRIVER, "ada")
        assert again.participant == first.participant and codes(old) == ["taken_over"]
        assert got(new, Welcome)[0].role is Role.DRIVER
        watching, _ = await come(house, Grant.SPECTATOR, "ada")
        assert watching.participant == first.participant and watching.role is Role.SPECTATOR
        other, _ = await come(house, Grant.DRIVER, "eve", token=first.token)
        assert other.participant != first.participant, "a seat token of another identity opens nothing"

    play(scene)
