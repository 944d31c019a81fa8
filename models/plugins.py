"""Families of other packages: found through the entry point group `worldroom.families`, judged before they are used.

    [project.entry-points."worldroom.families"]
    ripple = "ripple_world:FAMILY"

A package that cannot be used costs one line in the log; asking for a card of its name says the same line.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from .contract.faults import FamilyFault
from .family import Family

log = logging.getLogger(__name__)

GROUP = "worldroom.families"


@dataclass(frozen=True, slots=True)
class Plugins:
    """`families`: those that can be used. `faults`: why others cannot, by the name of their entry point."""

    families: tuple[Family, ...]
    faults: Mapping[str, FamilyFault]


@cache
def find(taken: tuple[str, ...]) -> Plugins:
    """Load what is installed, once. `taken`: names of cards this program has itself."""
    families: list[Family] = []
    faults: dict[str, FamilyFault] = {}
    for point in entry_points(group=GROUP):
        try:
            family = _loaded(point)
            _check_names(point, family, {*taken, *(card.name for other in families for card in other.cards)})
        except FamilyFault as fault:
            log.warning("%s", fault)
            faults[point.name] = fault
        else:
            families.append(family)
    return Plugins(tuple(families), faults)


def _loaded(point: EntryPoint) -> Family:
    try:
        found = point.load()
    except Exception as error:  # whatever a stranger's module does when it is imported
        raise FamilyFault(_named(point), f"{type(error).__name__}: {error}") from error
    if not isinstance(found, Family):
        raise FamilyFault(_named(point), f"'{point.value}' is a {type(found).__name__}, a Family is needed")
    return found


def _check_names(point: EntryPoint, family: Family, taken: set[str]) -> None:
    for problem in _problems(family, taken):
        raise FamilyFault(_named(point), problem)


def _problems(family: Family, taken: set[str]) -> Iterator[str]:
    if not family.cards:
        yield f"family '{family.name}' has no cards"
    for card in family.cards:
        if card.name in taken:
            yield f"there is a card '{card.name}' already"
        if card.family != family.name:
            yield f"card '{card.name}' says family '{card.family}', it comes with '{family.name}'"


def _named(point: EntryPoint) -> str:
    return f"{point.name}, from package {point.dist.name}" if point.dist is not None else point.name
