"""A session as its journal tells it, for a server that goes on with it: its words, and futures nobody chose between.

    note of the room   up to a second old where its server was killed
    journal            says what has become of its words since, and which chunks every future was made of

Pure: knows no engine that runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ...engine.api import Begin, CardInfo, Conditions
from ..journal.script import OpenChoice, Script
from .futures import Future, MadeChunk
from .lane import Lane, controls_of
from .prompt_versions import PromptPart, PromptsRecord, PromptVersion


@dataclass(frozen=True, slots=True)
class RecordedFutures:
    """Futures that an earlier server showed, and between which nobody has chosen: they part before chunk `first`.

    `made`: chunks of the one that plays, `conditions` of those since `first`. `still`: the one that stands still;
    `lanes`: those beside the one that plays; `versions`: words that some of them are under.
    """

    first: int
    made: tuple[MadeChunk, ...]
    conditions: dict[int, Conditions]
    still: Future | None
    lanes: tuple[Lane, ...]
    versions: tuple[PromptVersion, ...]


def futures_of(script: Script, choice: OpenChoice, card: CardInfo) -> RecordedFutures:
    """Their worlds have no names: no engine has them."""
    first, leads = choice.first, script.history(script.playing, "")
    conditions = {step.chunk: step.conditions for step in leads if isinstance(step, Begin) and step.chunk >= first}
    still = None if choice.still is None else _future(script, choice.still, first)
    lanes = tuple(_lane(script, epoch, first, card) for epoch in choice.beside)
    asked = {made.prompt_version for made in (() if still is None else still.made)}
    known = (words_of(script, number) for number in sorted(asked))
    versions = tuple(version for version in known if version is not None and version.mix is not None)
    return RecordedFutures(first, made_chunks(script, script.playing), conditions, still, lanes, versions)


def made_chunks(script: Script, epoch: int, first: int = 0) -> tuple[MadeChunk, ...]:
    """What the world with which an epoch ends was made of, from that chunk on; without those of an earlier session."""
    digests = {(each.epoch, made.chunk): made.digest for each in script.epochs for made in each.chunks}
    steps = [step for step in script.history(epoch, "") if isinstance(step, Begin) and step.chunk >= first]
    return tuple(
        MadeChunk(step.chunk, at, digest, step.conditions.prompt_version, step.conditions.pressed)
        for step in steps
        if (digest := digests.get((at := step.conditions.epoch, step.chunk))) is not None
    )


def words_of(script: Script, number: int) -> PromptVersion | None:
    """The prompt of that number, with the keys of its texts as far as they were encoded; None = there is none."""
    asked, ready = script.asked.get(number), script.ready
    if asked is None:
        return None
    parts = tuple(
        PromptPart(part.number, script.asked[part.number].text, part.weight, ready.get(part.number))
        for part in asked.parts
    )
    at = None if asked.at < 0 else asked.at
    how = asked.transition, asked.frames, ready.get(number)
    return PromptVersion(number, asked.text, *how, weight=asked.weight, parts=parts, at=at)


def prompts_of(
    script: Script, begun: Sequence[Begin], noted: PromptsRecord, turned: bool, frames_per_chunk: int
) -> PromptsRecord:
    """The prompt memory behind those chunks. `noted`: what it was up to a second before, and whether the world has
    `turned` to another epoch since.
    """
    number, last = begun[-1].conditions.prompt_version, max((noted.last, *script.asked))
    since = (words_of(script, asked) for asked in sorted(script.asked) if asked > noted.last)
    planned = [each for each in since if each is not None and each.at is not None and each.mix is not None]
    noted = msgspec.structs.replace(noted, last=last, planned=(*noted.planned, *planned))
    current = noted.versions[-1].number if noted.versions else 0
    if number == current or (number < current and not turned):
        return noted
    known = {version.number: version for version in (*noted.versions, *noted.planned)}
    version = known.get(number) or words_of(script, number)
    if version is None or version.mix is None:
        return noted
    run = 1
    while run < len(begun) and begun[-run - 1].conditions.prompt_version == number:
        run += 1
    before = begun[-run - 1].conditions if run < len(begun) else None
    blends = before is not None and before.epoch == begun[-1].conditions.epoch
    start = {share.key: share.weight for share in before.prompts} if blends and before is not None else {}
    versions = (*(each for each in noted.versions if each.number < number), version)
    return PromptsRecord(
        versions,
        start,
        run * frames_per_chunk,
        tuple(each for each in noted.planned if each.number > number),
        last,
    )


def _future(script: Script, epoch: int, first: int) -> Future:
    return Future("", script.branch(epoch), epoch, first, script.noise(epoch), made_chunks(script, epoch, first))


def _lane(script: Script, epoch: int, first: int, card: CardInfo) -> Lane:
    future, turned = _future(script, epoch, first), script.of(epoch).turned
    assert turned is not None, "a future of a fork begins with its turn"
    version = words_of(script, turned.prompt_version) if turned.prompt_version else None
    return Lane(future, version, turned.held, controls_of(card, turned.held), made=[*future.made])
