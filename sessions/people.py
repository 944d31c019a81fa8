"""Names by which the people in a room know each other: their own, or an animal's that nobody else has there. Pure."""

from collections.abc import Container

ANIMALS = (
    "Badger", "Bear", "Beaver", "Bison", "Bobcat", "Condor", "Crane", "Crow", "Deer", "Dolphin", "Dove", "Eagle",
    "Elk", "Falcon", "Ferret", "Finch", "Fox", "Gecko", "Goose", "Hare", "Hawk", "Heron", "Ibis", "Jay", "Kestrel",
    "Koala", "Lark", "Lemur", "Lynx", "Marten", "Mole", "Moose", "Newt", "Ocelot", "Orca", "Otter", "Owl", "Panda",
    "Puffin", "Quail", "Raven", "Robin", "Salmon", "Seal", "Stork", "Swan", "Tapir", "Wren",
)  # fmt: skip


def name_of(participant: str, wish: str | None, taken: Container[str]) -> str:
    """The wished name, else an animal that `participant` (hexadecimal) picks; a number is added when that is taken."""
    wished = " ".join((wish or "").split())
    first = wished or ANIMALS[int(participant, 16) % len(ANIMALS)]
    name, number = first, 1
    while name in taken:
        number += 1
        name = f"{first} {number}"
    return name
