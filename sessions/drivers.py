"""How several people drive one world, as a room is told in one word. Pure; knows no participant.

turns                       one of them at a time (of a card with several players: one each)
controls:2                  two, who share out the controls in the card's order
controls:left+right,up+down two, who have these; what nobody is named for, each of them has
vote:5                      up to five: what most of those press who press anything
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise

from .terms import DRIVERS_MOST, DRIVERS_PATTERN

VOTERS = 8
"""Of `vote` without a number."""


class BadDrivers(ValueError):
    """No such rule, or none for this world; the message says why."""


class Driving(StrEnum):
    TURNS = "turns"
    CONTROLS = "controls"
    VOTE = "vote"


@dataclass(frozen=True, slots=True)
class PlaceSpec:
    """A place at the wheel: of which player (from 0), and the indices of the controls that are its own."""

    player: int
    controls: frozenset[int]


@dataclass(frozen=True, slots=True)
class DriversRule:
    """`count`: people for each player of the card. `groups`: names of controls, one group each; () = in equal parts."""

    driving: Driving = Driving.TURNS
    count: int = 1
    groups: tuple[tuple[str, ...], ...] = ()

    @staticmethod
    def read(text: str) -> "DriversRule":
        """Raises `BadDrivers`."""
        if re.fullmatch(DRIVERS_PATTERN, text) is None:
            raise BadDrivers(f"'{text[:64]}' is none of turns, controls:2, controls:left+right,up and vote:5")
        word, _, rest = text.partition(":")
        driving = Driving(word)
        if driving is Driving.TURNS:
            return TURNS
        if not rest or rest.isdigit():
            count = int(rest) if rest else VOTERS
            if not 2 <= count <= DRIVERS_MOST:
                raise BadDrivers(f"2 to {DRIVERS_MOST} people drive together, not {count}")
            return DriversRule(driving, count)
        groups = tuple(tuple(group.split("+")) for group in rest.split(","))
        named = [name for group in groups for name in group]
        if len(set(named)) < len(named):
            raise BadDrivers(f"a control belongs to one of them: {rest}")
        if len(groups) > DRIVERS_MOST:
            raise BadDrivers(f"2 to {DRIVERS_MOST} people drive together, not {len(groups)}")
        return DriversRule(driving, len(groups), groups)

    def __str__(self) -> str:
        if self.driving is Driving.TURNS:
            return self.driving.value
        groups = ",".join("+".join(group) for group in self.groups)
        return f"{self.driving}:{groups or self.count}"

    def places(self, controls: Sequence[str], players: int) -> tuple[PlaceSpec, ...]:
        """For a card with these controls; raises `BadDrivers` where it has none such. Players come in turn, so that the
        first who come are on different ones.
        """
        shares = self._shares(controls)
        return tuple(PlaceSpec(player, share) for share in shares for player in range(players))

    def _shares(self, controls: Sequence[str]) -> list[frozenset[int]]:
        everything = frozenset(range(len(controls)))
        if self.driving is not Driving.CONTROLS:
            return [everything] * self.count
        if not self.groups:
            if self.count > len(controls):
                raise BadDrivers(f"this world has {len(controls)} controls, which {self.count} people cannot share")
            whole, more = divmod(len(controls), self.count)
            ends = accumulate([whole + (index < more) for index in range(self.count)], initial=0)
            return [frozenset(range(first, last)) for first, last in pairwise(ends)]
        unknown = [name for group in self.groups for name in group if name not in controls]
        if unknown:
            raise BadDrivers(f"this world has no control '{unknown[0]}': it has {', '.join(controls) or 'none'}")
        named = [frozenset(controls.index(name) for name in group) for group in self.groups]
        return [own | (everything - frozenset().union(*named)) for own in named]


TURNS = DriversRule()
