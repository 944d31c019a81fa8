"""One prompt of a session as a version: its text, the texts mixed into it, and what became of each. Pure."""

import msgspec

from ...engine.api import PromptMeaning
from ..messages import PlannedView, PromptChanged, Transition, WeighedText


class PromptPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Another text of a mix, asked for under a number of its own. `key`, `meaning`: as in `PromptVersion`."""

    number: int
    text: str
    weight: float
    key: str | None = None
    meaning: PromptMeaning | None = None


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for beside a text and how the world turns to it: its weight among `others`, and the chunk `at`."""

    weight: float = 1.0
    others: tuple[WeighedText, ...] = ()
    at: int | None = None


AT_ONCE = Wanted()


class PromptVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One prompt of a session. `key` None = its embedding is not there yet; `frames` is the length of its blend.

    `meaning`: which of its words count, where the card tells. `parts`: what is mixed into it. `at`: the chunk it waits
    for.
    """

    number: int
    text: str
    transition: Transition
    frames: int
    key: str | None = None
    meaning: PromptMeaning | None = None
    weight: float = 1.0
    parts: tuple[PromptPart, ...] = ()
    at: int | None = None

    @property
    def mix(self) -> dict[str, float] | None:
        """The weights of its texts' keys, which sum to 1; None while one of them is not there yet."""
        mix: dict[str, float] = {}
        texts: tuple[PromptVersion | PromptPart, ...] = (self, *self.parts)
        total = sum(text.weight for text in texts)
        for text in texts:
            if text.key is None:
                return None
            mix[text.key] = mix.get(text.key, 0.0) + text.weight / total
        return mix

    @property
    def wanted(self) -> Wanted:
        """What to ask for to have this mix again, at once."""
        return Wanted(self.weight, tuple(WeighedText(part.text, part.weight) for part in self.parts))

    def encoded(self, number: int, key: str, meaning: PromptMeaning | None) -> "PromptVersion":
        """With the embedding of the text that has this number."""
        if number == self.number:
            return msgspec.structs.replace(self, key=key, meaning=meaning)
        parts = (
            msgspec.structs.replace(part, key=key, meaning=meaning) if part.number == number else part
            for part in self.parts
        )
        return msgspec.structs.replace(self, parts=tuple(parts))

    def planned(self) -> PlannedView:
        """What everybody in the room is told while it waits for its chunk."""
        assert self.at is not None, "it waits for a chunk"
        return PlannedView(self.number, self.at, self.text, self.weight, self.wanted.others)

    def changed(self) -> PromptChanged:
        """What everybody in the room is told when the world turns to it."""
        asked: tuple[PromptVersion | PromptPart, ...] = (self, *self.parts)
        meanings = [text.meaning for text in asked if text.meaning is not None]
        return PromptChanged(
            version=self.number,
            text=self.text,
            understood=tuple(dict.fromkeys(word for meaning in meanings for word in meaning.understood)),
            missed=tuple(dict.fromkeys(word for meaning in meanings for word in meaning.missed)),
            weight=self.weight,
            others=self.wanted.others,
        )


class PromptsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The prompt memory: versions that took effect, oldest first, and the mix that the last one began from.

    `planned`: those that wait for their chunk. `last`: the highest number that was given.
    """

    versions: tuple[PromptVersion, ...]
    start: dict[str, float]
    played: int
    planned: tuple[PromptVersion, ...] = ()
    last: int = 0
