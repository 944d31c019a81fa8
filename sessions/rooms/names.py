"""Which names rooms may have, fresh ones such as `amber-otter-27`, and what people in a room are called. Pure."""

import random
import unicodedata
from collections.abc import Collection

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

LOOKS_LIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u04cf\u043a\u043c\u0442\u0432\u043d"
    "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c4\u01310|1",
    "aeopcyxijsdhlkmtbh" + "aopvikti" + "oll",
)
"""Cyrillic and Greek small letters, and digits, to the Latin letters they are read as."""


def valid_room(name: str) -> bool:
    """Whether a room may have this name: see `ROOM_NAME_RULE`."""
    alphabet = all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)
    return 0 < len(name) <= ROOM_NAME_CHARS_MAX and alphabet and name[0].isalnum()


def fresh_room(source: random.Random) -> str:
    return f"{source.choice(FIRST)}-{source.choice(SECOND)}-{source.randrange(10, 100)}"


def person_name(participant: str, wish: str | None, taken: Collection[str]) -> str:
    """The wished name, else an animal that `participant` (hexadecimal) picks; a number is added when people would take
    it for one that is there."""
    wished = " ".join("".join(sign for sign in wish or "" if unicodedata.category(sign) != "Cf").split())
    first = wished if as_seen(wished) else ANIMALS[int(participant, 16) % len(ANIMALS)]
    seen = {as_seen(name) for name in taken}
    name, number = first, 1
    while as_seen(name) in seen:
        number += 1
        name = f"{first} {number}"
    return name


def as_seen(name: str) -> str:
    """What a reader tells names apart by: no case, accents, invisible signs or blanks; letters that look like Latin
    ones are those (after Unicode's TR39, its commonest rows)."""
    signs = unicodedata.normalize("NFKD", name).casefold()
    return "".join(s for s in signs if s.isprintable() and not unicodedata.combining(s) and s != " ").translate(
        LOOKS_LIKE
    )
