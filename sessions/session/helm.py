"""What all drivers of a world do, put together into what steers one chunk. Pure; knows no wheel.

controls  each driver presses their own; what several have is as far down as the furthest of them presses it
vote      who presses nothing abstains; a control is down where more than half of the others press it, one that may
          be pressed part of the way is as far down as they press it on average
motion    of a vote: the average of who moves; else the sum
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...engine.api import CardInfo, Frame, PlayerInput
from ..audience import FrameInput
from ..journal.events import DriverInput
from .inbox import Inbox, Sample, keymap, partly


@dataclass(frozen=True, slots=True)
class Hand:
    """A driver who is there: of which player, and which controls are theirs."""

    participant: str
    inbox: Inbox
    player: int
    controls: frozenset[int]


@dataclass(frozen=True, slots=True)
class HandSample:
    hand: Hand
    sample: Sample

    def told(self, frame: Frame, controls: int) -> FrameInput:
        """What a frame of this chunk contains of them. `controls`: of the card."""
        received, first = self.sample.received, self.hand.player * controls
        hold_us = 0 if received is None else max(0, round((frame.begun - received) * 1e6))
        return FrameInput(self.sample.seq, hold_us, frame.controls[first : first + controls])

    def recorded(self) -> DriverInput:
        sample = self.sample
        return DriverInput(self.hand.participant, sample.seq, sample.controls, sample.pointer)


@dataclass(frozen=True, slots=True)
class HelmSample:
    """What one chunk takes: `players`, one entry each, made from `hands`."""

    players: tuple[PlayerInput, ...]
    hands: tuple[HandSample, ...] = ()

    @property
    def seq(self) -> int:
        """Of the first driver."""
        return self.hands[0].sample.seq if self.hands else 0

    def give_back(self) -> None:
        """The chunk was cancelled: its taps and motion belong to the next one."""
        for each in self.hands:
            each.hand.inbox.give_back(each.sample)


class Helm:
    """`card` None = its world is not open yet. `vote`: all steer all controls together."""

    def __init__(self, card: CardInfo | None = None, vote: bool = False) -> None:
        self._hands: tuple[Hand, ...] = ()
        self._controls = () if card is None else card.controls
        self._count, self._players = len(self._controls), 1 if card is None else card.players
        self._analog, self._vote = partly(self._controls), vote

    def inbox(self) -> Inbox:
        """For one connection."""
        return Inbox(keymap(self._controls), self._count, self._analog)

    def steer(self, hands: tuple[Hand, ...]) -> None:
        """From the next chunk on they steer; () releases every key. What newcomers did before counts for nothing."""
        known = {id(hand.inbox) for hand in self._hands}
        for hand in hands:
            if id(hand.inbox) not in known:
                hand.inbox.flush()
        self._hands = hands

    def sample(self) -> HelmSample:
        """What steers one chunk; with nobody there every key is up."""
        taken = tuple(HandSample(hand, hand.inbox.sample()) for hand in self._hands)
        players = (self._player([each for each in taken if each.hand.player == n]) for n in range(self._players))
        return HelmSample(tuple(players), taken)

    def flush(self) -> None:
        """Forget taps and motion so far; keys that are held stay held."""
        for hand in self._hands:
            hand.inbox.flush()

    def _player(self, taken: Sequence[HandSample]) -> PlayerInput:
        if self._vote:
            return self._voted([each.sample for each in taken])
        pressed = [
            max((each.sample.controls[index] for each in taken if index in each.hand.controls), default=0.0)
            for index in range(self._count)
        ]
        x, y = (sum(each.sample.pointer[axis] for each in taken) for axis in (0, 1))
        return PlayerInput(tuple(pressed), (x, y))

    def _voted(self, samples: Sequence[Sample]) -> PlayerInput:
        voters = [sample.controls for sample in samples if any(sample.controls)]
        movers = [sample.pointer for sample in samples if sample.pointer != (0.0, 0.0)]
        down = [_mean([voter[index] for voter in voters]) for index in range(self._count)]
        pressed = (share if index in self._analog else float(share > 0.5) for index, share in enumerate(down))
        x, y = (_mean([mover[axis] for mover in movers]) for axis in (0, 1))
        return PlayerInput(tuple(pressed), (x, y))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
