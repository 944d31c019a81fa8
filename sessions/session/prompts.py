"""A session's prompt memory: every version, and the mix of prompts that steers the world now.

    weight of the new prompt        cut: 1 from the next chunk on
    1 |          ____               blend: rises with the frames played, from whatever mix is there now
    0 |____/                        a prompt that arrives during a blend starts from the current mix: no jump

A prompt may be a mix of several texts, and may wait for a chunk; both are whole once every text has its embedding.

Pure: counts frames, never seconds of a clock. Survives reconnects because it belongs to the session.
"""

from collections import deque
from collections.abc import Mapping

from ...engine.api import CardInfo, PromptMeaning, PromptShare
from ..messages import Problem, Prompt, PromptsPlanned, Transition
from .ack import PendingAck
from .prompt_versions import AT_ONCE, PromptPart, PromptsRecord, PromptVersion, Wanted

VERSIONS_MAX = 64
SHARES_MAX = 8
WAITING_MAX = 8
PLANNED_MAX = 4
NO_MIX = "this world does not mix prompts"


class PromptMemory:
    """Versions in order of asking, and the mix in order of encoding.

    A version waits for its embedding, with whom to tell when it takes effect.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, PromptVersion] = {}
        self._planned: dict[int, PromptVersion] = {}
        self._overtaken: list[PendingAck] = []
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

    def planned(self) -> PromptsPlanned:
        """Versions that wait for their chunk, whether they have their embeddings or not."""
        waiting = (each for each in (*self._planned.values(), *self._waiting.values()) if each.at is not None)
        return PromptsPlanned(tuple(each.planned() for each in sorted(waiting, key=lambda each: each.at or 0)))

    def versions(self) -> tuple[PromptVersion, ...]:
        """The last versions that took effect, oldest first."""
        return tuple(self._versions)

    def refuses(self, message: Prompt, card: CardInfo) -> Problem | None:
        """Why this message cannot become a version, if it cannot."""
        given = max(len(message.text), *(len(other.text) for other in message.others), 0)
        if given > card.prompt_chars:
            detail = f"this world takes {card.prompt_chars} characters, these are {given}"
            return Problem(code="prompt_too_long", detail=detail, id=message.id)
        if len(message.others) >= card.prompts_max:
            detail = f"this world mixes at most {card.prompts_max} prompts" if card.prompts_max > 1 else NO_MIX
            return Problem(code="no_mix", detail=detail, id=message.id)
        planned = sum(version.at is not None for version in (*self._waiting.values(), *self._planned.values()))
        if message.at is not None and planned >= PLANNED_MAX:
            return Problem(code="busy", detail=f"{PLANNED_MAX} prompts wait for their chunk already", id=message.id)
        if len(self._waiting) >= WAITING_MAX:
            return Problem(code="busy", detail="too many prompts wait to be encoded", id=message.id)
        if message.transition is Transition.RECACHE and not card.recache:
            return Problem(code="no_recache", detail="this world cannot rebuild its memory", id=message.id)
        return None

    def ask(
        self,
        text: str,
        transition: Transition,
        frames: int,
        ack: PendingAck | None = None,
        wanted: Wanted = AT_ONCE,
    ) -> PromptVersion:
        """A new version that waits for its embeddings; a blend takes `frames`, a cut none."""
        version = self._numbered(text, transition, frames if transition is Transition.BLEND else 0, wanted)
        self._waiting[version.number] = version
        if ack is not None:
            self._acks[version.number] = ack
        return version

    def aside(self, text: str, wanted: Wanted) -> PromptVersion:
        """A new version for a future beside the world: the world itself does not turn to it."""
        return self._numbered(text, Transition.CUT, 0, wanted)

    def _numbered(self, text: str, transition: Transition, frames: int, wanted: Wanted) -> PromptVersion:
        first = self._last + 1
        parts = tuple(PromptPart(number, each.text, each.weight) for number, each in enumerate(wanted.others, first))
        self._last = first + len(parts)
        return PromptVersion(self._last, text, transition, frames, weight=wanted.weight, parts=parts, at=wanted.at)

    def know(self, version: PromptVersion) -> None:
        """The embedding of such a version is there: the world may turn to it once it is that future."""
        self._known.append(version)

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

    def take_overtaken(self) -> list[PendingAck]:
        """Who asked for versions that never take effect, because a newer one did before their chunk came."""
        overtaken, self._overtaken = self._overtaken, []
        return overtaken

    def whole_of(self, number: int) -> int:
        """The version that waits for the text of this number: itself, or the mix that it is a part of."""
        waiting = self._waiting.values()
        return next((each.number for each in waiting if any(part.number == number for part in each.parts)), number)

    def unencoded(self) -> tuple[tuple[int, str], ...]:
        """The texts that have no embedding yet, by their numbers."""
        texts: list[PromptVersion | PromptPart] = []
        for version in self._waiting.values():
            texts += *version.parts, version
        return tuple((text.number, text.text) for text in texts if text.key is None)

    def waits(self, number: int) -> bool:
        """For an embedding, or for its chunk."""
        return number in self._waiting or number in self._planned

    def encoded(self, number: int, key: str, meaning: PromptMeaning | None = None) -> PromptVersion | None:
        """The embedding of a text is there: the world turns to its version when that is whole and waits for no chunk.

        None when it does not turn, as when a newer version already took effect.
        """
        whole = self.whole_of(number)
        version = self._waiting.get(whole)
        if version is None:
            return None
        version = self._waiting[whole] = version.encoded(number, key, meaning)
        if version.mix is None:
            return None
        del self._waiting[whole]
        if whole < self.number:
            if version.at is not None:
                self._overtake(whole)
            return None
        if version.at is not None:
            self._planned[whole] = version
            return None
        return self._take_effect(version)

    def due(self, chunk: int) -> PromptVersion | None:
        """The world turns to the newest version that waited for this chunk or an earlier one."""
        due = [number for number, version in self._planned.items() if version.at is not None and version.at <= chunk]
        return self._take_effect(self._planned.pop(max(due))) if due else None

    def _take_effect(self, version: PromptVersion) -> PromptVersion:
        self._start = self._weights(self._played)
        self._played = 0
        self._rebuild = self._rebuild or version.transition is Transition.RECACHE
        self._versions.append(version)
        self._known.append(version)
        for older in [number for number in self._planned if number < version.number]:
            del self._planned[older]
            self._overtake(older)
        return version

    def _overtake(self, number: int) -> None:
        ack = self.take_ack(number)
        if ack is not None:
            self._overtaken.append(ack)

    def failed(self, number: int) -> PromptVersion | None:
        """The version cannot be encoded and never takes effect."""
        return self._waiting.pop(self.whole_of(number), None)

    def record(self) -> PromptsRecord:
        """Everything but what waits for its embedding and rebuilds to come."""
        return PromptsRecord(
            self.versions(), dict(self._start), self._played, tuple(self._planned.values()), self._last
        )

    def restore(self, record: PromptsRecord) -> None:
        """Be what was recorded; for a memory that was never asked."""
        self._versions.extend(record.versions)
        self._known.extend(record.versions)
        self._planned.update({version.number: version for version in record.planned})
        self._last = max(record.last, self.number, *self._planned)
        self._start, self._played = dict(record.start), record.played

    def go_on(self, record: PromptsRecord) -> None:
        """No version of that is known any more; numbers go on behind them."""
        numbers = (version.number for version in (*record.versions, *record.planned))
        self._last = max((record.last, *numbers))

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
        target = None if version is None else version.mix
        if version is None or target is None:
            return {}
        done = 1.0 if not self._start or played >= version.frames else played / version.frames
        weights = {key: weight * (1.0 - done) for key, weight in self._start.items()} if done < 1.0 else {}
        for key, weight in target.items():
            weights[key] = weights.get(key, 0.0) + weight * done
        before = sorted((key for key in weights if key not in target), key=lambda key: weights[key], reverse=True)
        strongest = {*target, *before[: SHARES_MAX - len(target)]}
        total = sum(weights[key] for key in strongest)
        return {key: weights[key] / total for key in weights if key in strongest and weights[key] > 0.0}
