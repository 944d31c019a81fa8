"""A session's prompt memory: every version, and the mix of prompts that steers the world now.

    weight of the new prompt        cut: 1 from the next chunk on
    1 |          ____               blend: rises with the frames played, from whatever mix is there now
    0 |____/                        a prompt that arrives during a blend starts from the current mix: no jump

Pure: counts frames, never seconds of a clock. Survives reconnects because it belongs to the session.
"""

from collections import deque
from collections.abc import Mapping

import msgspec

from ...engine.api import CardInfo, PromptMeaning, PromptShare
from ..messages import Problem, Prompt, PromptChanged, Transition
from .ack import PendingAck

VERSIONS_MAX = 64
SHARES_MAX = 4
WAITING_MAX = 8


class PromptVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One prompt of a session. `key` None = its embedding is not there yet; `frames` is the length of its blend.

    `meaning`: which of its words count, where the card tells.
    """

    number: int
    text: str
    transition: Transition
    frames: int
    key: str | None = None
    meaning: PromptMeaning | None = None

    def changed(self) -> PromptChanged:
        """What everybody in the room is told when the world turns to it."""
        understood, missed = ((), ()) if self.meaning is None else (self.meaning.understood, self.meaning.missed)
        return PromptChanged(version=self.number, text=self.text, understood=understood, missed=missed)


class PromptsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prompt memory: versions that took effect, oldest first, and the mix that the last one began from."""

    versions: tuple[PromptVersion, ...]
    start: dict[str, float]
    played: int


class PromptMemory:
    """Versions in order of asking, and the mix in order of encoding.

    A version waits for its embedding, with whom to tell when it takes effect.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, PromptVersion] = {}
        self._aside: dict[int, PromptVersion] = {}
        self._acks: dict[int, PendingAck] = {}
        self._versions: deque[PromptVersion] = deque(maxlen=VERSIONS_MAX)
        self._known: deque[PromptVersion] = deque(maxlen=VERSIONS_MAX)
        """Also those of futures that do not play."""
        self._last = 0
        self._start: Mapping[str, float] = {}
        self._played = 0
        self._rebuild = False

    @property
    def current(self) -> PromptVersion | None:
        """The version that the world has, or is on its way to."""
        return self._versions[-1] if self._versions else None

    @property
    def number(self) -> int:
        return self._versions[-1].number if self._versions else 0

    @property
    def first_waits(self) -> bool:
        """The world has no prompt yet, but is about to get one."""
        return self.number == 0 and bool(self._waiting)

    def versions(self) -> tuple[PromptVersion, ...]:
        """The last versions that took effect, oldest first."""
        return tuple(self._versions)

    def refuses(self, message: Prompt, card: CardInfo) -> Problem | None:
        """Why this message cannot become a version, if it cannot."""
        given = len(message.text)
        if given > card.prompt_chars:
            detail = f"this world takes {card.prompt_chars} characters, these are {given}"
            return Problem(code="prompt_too_long", detail=detail, id=message.id)
        if len(self._waiting) >= WAITING_MAX:
            return Problem(code="busy", detail="too many prompts wait to be encoded", id=message.id)
        if message.transition is Transition.RECACHE and not card.recache:
            return Problem(code="no_recache", detail="this world cannot rebuild its memory", id=message.id)
        return None

    def ask(self, text: str, transition: Transition, frames: int, ack: PendingAck | None = None) -> PromptVersion:
        """A new version that waits for its embedding; a blend takes `frames`, a cut none."""
        self._last += 1
        version = PromptVersion(self._last, text, transition, frames if transition is Transition.BLEND else 0)
        self._waiting[version.number] = version
        if ack is not None:
            self._acks[version.number] = ack
        return version

    def aside(self, text: str) -> PromptVersion:
        """A new version for a future beside the world: the world itself does not turn to it."""
        self._last += 1
        version = self._aside[self._last] = PromptVersion(self._last, text, Transition.CUT, 0)
        return version

    def encoded_aside(self, number: int, key: str, meaning: PromptMeaning | None) -> PromptVersion | None:
        """The embedding of such a version is there; None when it is none."""
        version = self._aside.pop(number, None)
        if version is None:
            return None
        version = msgspec.structs.replace(version, key=key, meaning=meaning)
        self._known.append(version)
        return version

    def turn_to(self, number: int | None) -> PromptVersion | None:
        """Be under that version, whole; None when the world is under it already, or it is not known any more."""
        version = next((each for each in self._known if each.number == number), None)
        if version is None or number == self.number:
            return None
        earlier = [each for each in self._known if each.number < version.number]
        self._versions.clear()
        self._versions.extend([*earlier, version])
        self._start, self._played = {}, version.frames
        return version

    def take_ack(self, number: int) -> PendingAck | None:
        """Who is told of this version; asked once."""
        return self._acks.pop(number, None)

    def encoded(self, number: int, key: str, meaning: PromptMeaning | None = None) -> PromptVersion | None:
        """The embedding of a version is there: the world turns to it. None when a newer one already did."""
        version = self._waiting.pop(number, None)
        if version is None or number < self.number:
            return None
        self._start = self._weights(self._played)
        self._played = 0
        self._rebuild = self._rebuild or version.transition is Transition.RECACHE
        version = msgspec.structs.replace(version, key=key, meaning=meaning)
        self._versions.append(version)
        self._known.append(version)
        return version

    def failed(self, number: int) -> PromptVersion | None:
        """The version cannot be encoded and never takes effect."""
        self._aside.pop(number, None)
        return self._waiting.pop(number, None)

    def record(self) -> PromptsRecord:
        """Everything but what waits for its embedding and rebuilds to come."""
        return PromptsRecord(self.versions(), dict(self._start), self._played)

    def restore(self, record: PromptsRecord) -> None:
        """Be what was recorded; for a memory that was never asked."""
        self._versions.extend(record.versions)
        self._known.extend(record.versions)
        self._last, self._start, self._played = self.number, dict(record.start), record.played

    def go_on(self, number: int) -> None:
        """No version is known any more; numbers go on behind that one."""
        self._last = number

    def settle(self) -> None:
        """End a blend at once, for a world that starts anew: it has nothing to rebuild either."""
        self._start, self._rebuild = {}, False

    def rebuild(self) -> None:
        """The next chunk rebuilds the cache under the mix of now."""
        self._rebuild = True

    def take_rebuild(self) -> bool:
        """Whether the next chunk rebuilds the cache; asked once per chunk."""
        rebuild, self._rebuild = self._rebuild, False
        return rebuild

    def take(self, frames: int) -> tuple[PromptShare, ...]:
        """The mix for the next chunk, which plays `frames` frames; weights sum to 1 (empty = no prompt at all)."""
        self._played += frames
        weights = self._weights(self._played)
        return tuple(PromptShare(key=key, weight=weight) for key, weight in weights.items())

    def _weights(self, played: int) -> Mapping[str, float]:
        version = self.current
        if version is None or version.key is None:
            return {}
        done = 1.0 if not self._start or played >= version.frames else played / version.frames
        weights = {key: weight * (1.0 - done) for key, weight in self._start.items()} if done < 1.0 else {}
        weights[version.key] = weights.get(version.key, 0.0) + done
        strongest = sorted(weights, key=lambda key: weights[key], reverse=True)[:SHARES_MAX]
        if version.key not in strongest:
            strongest[-1] = version.key
        total = sum(weights[key] for key in strongest)
        return {key: weights[key] / total for key in weights if key in strongest and weights[key] > 0.0}
