"""Where an episode goes in a data set: its number, the rows before it, and the tasks that have a number so far."""

from dataclasses import dataclass


@dataclass(slots=True)
class Slot:
    place: int
    start: int
    tasks: dict[str, int]
