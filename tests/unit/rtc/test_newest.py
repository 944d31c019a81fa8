"""Of what a channel cannot take yet only the newest is sent, once there is room."""

from types import SimpleNamespace
from typing import Any

from worldroom.rtc.newest import FULL, Newest
from worldroom.rtc.wire import Role, encode
from worldroom.sessions.messages import Participants


class Channel(SimpleNamespace):
    """A channel of aiortc, whose bytes leave it when the test says so."""

    def __init__(self) -> None:
        super().__init__(bufferedAmount=0, bufferedAmountLowThreshold=0, readyState="open", sent=[], low=None)

    def on(self, event: str, call: Any) -> None:
        assert event == "bufferedamountlow"
        self.low = call

    def send(self, text: str) -> None:
        self.sent.append(text)
        self.bufferedAmount += 4000

    def leave(self) -> None:
        self.bufferedAmount = 0
        self.low()


def there(spectators: int) -> Participants:
    return Participants(None, Role.DRIVER, spectators)


def told(*spectators: int) -> list[str]:
    return [encode(there(count)) for count in spectators]


def test_two_hundred_in_a_row_are_as_many_as_fit_and_the_newest() -> None:
    channel = Channel()
    newest = Newest(channel)  # type: ignore[arg-type]
    for number in range(200):
        newest.put(there(number))
    assert channel.sent == told(0, 1, 2, 3, 4) and channel.bufferedAmountLowThreshold == FULL
    channel.leave()
    channel.leave()
    assert channel.sent == told(0, 1, 2, 3, 4, 199)


def test_a_channel_that_has_closed_is_sent_nothing() -> None:
    channel = Channel()
    newest = Newest(channel)  # type: ignore[arg-type]
    channel.bufferedAmount = FULL + 1
    newest.put(there(1))
    channel.readyState = "closed"
    channel.leave()
    assert channel.sent == []
