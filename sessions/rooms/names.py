"""Which names rooms may have, fresh ones such as `amber-otter-27`, and what people in a room are called. Pure."""

import random
from collections.abc import Container

ROOM_NAME_CHARS_MAX = 64
ROOM_NAME_RULE = "a room's name has 1 to 64 letters, digits, '-' or '_' and starts with a letter or digit"

FIRST = (
    "amber", "bold", "brisk", "calm", "clear", "cool", "coral", "deep", "dusky", "early", "even", "fair", "fast",
    "fleet", "fresh", "gentle", "glad", "golden", "grand", "green", "hazy", "jade", "keen", "kind", "light", "lively",
    "lucky", "mellow", "mild", "misty", "neat", "noble", "north", "open", "pale", "plain", "proud", "quick", "quiet",
    "rapid", "round", "royal", "ruby", "sandy", "silver", "sleek", "slow", "smooth", "snowy", "soft", "solar",
    "south", "still", "sunny", "swift", "teal", "tidy", "true", "vivid", "warm",
)  # fmt: skip
SECOND = (
    "badger", "bay", "birch", "bridge", "brook", "canyon", "cedar", "cliff", "cloud", "coast", "comet", "crane",
    "creek", "delta", "dune", "eagle", "falcon", "fern", "field", "finch", "fjord", "fox", "garden", "glade", "grove",
    "harbor", "hawk", "heron", "hill", "island", "lake", "lark", "lynx", "maple", "marsh", "meadow", "mesa", "moon",
    "moss", "otter", "owl", "peak", "pine", "plain", "pond", "raven", "reef", "ridge", "river", "robin", "rock",
    "sparrow", "spruce", "stone", "storm", "swan", "trail", "valley", "wren",
)  # fmt: skip
ANIMALS = (
    "Badger", "Bear", "Beaver", "Bison", "Bobcat", "Condor", "Crane", "Crow", "Deer", "Dolphin", "Dove", "Eagle",
    "Elk", "Falcon", "Ferret", "Finch", "Fox", "Gecko", "Goose", "Hare", "Hawk", "Heron", "Ibis", "Jay", "Kestrel",
    "Koala", "Lark", "Lemur", "Lynx", "Marten", "Mole", "Moose", "Newt", "Ocelot", "Orca", "Otter", "Owl", "Panda",
    "Puffin", "Quail", "Raven", "Robin", "Salmon", "Seal", "Stork", "Swan", "Tapir", "Wren",
)  # fmt: skip


def valid_room(name: str) -> bool:
    """Whether a room may have this name: see `ROOM_NAME_RULE`."""
    alphabet = all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)
    return 0 < len(name) <= ROOM_NAME_CHARS_MAX and alphabet and name[0].isalnum()


def fresh_room(source: random.Random) -> str:
    return f"{source.choice(FIRST)}-{source.choice(SECOND)}-{source.randrange(10, 100)}"


def person_name(participant: str, wish: str | None, taken: Container[str]) -> str:
    """The wished name, else an animal that `participant` (hexadecimal) picks; a number is added when that is taken."""
    wished = " ".join((wish or "").split())
    first = wished or ANIMALS[int(participant, 16) % len(ANIMALS)]
    name, number = first, 1
    while name in taken:
        number += 1
        name = f"{first} {number}"
    return name
