"""A session as rows: its chunks with actions, prompts and rewards from the journal, its frames from a film's notes.

Streams: one session in memory at a time, and of that only what a row needs.
"""

import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..journal import events
from ..journal.entry import Entry
from ..journal.history import Cut, History
from ..journal.replay import REDACTED
from ..recording.recordings import Recordings
from ..recording.summary import FrameNote, RecordingInfo, notes_of

ACTS = (
    events.InputReceived,
    events.PromptAsked,
    events.EpochStarted,
    events.WorldTurned,
    events.FeedbackGiven,
    events.PreferenceChosen,
)
"""What people do to a world; an export holds it."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One committed chunk. `reward`: likes minus dislikes of it."""

    chunk: int
    epoch: int
    branch: int
    at: float
    prompt: str
    action: tuple[float, ...]
    pointer: tuple[float, float]
    digest: str
    late_us: int
    reward: float


@dataclass(frozen=True, slots=True)
class RecordedFilm:
    path: Path
    info: RecordingInfo

    def notes(self) -> Iterator[FrameNote]:
        return notes_of(self.path)


@dataclass(slots=True)
class Episode:
    """One session. `digest`: over its journal as it lies there, so that the same session is exported once.

    `complete` False: retention has cut its beginning, so it cannot be replayed.
    """

    session: str
    opened: events.SessionOpened
    at: float
    digest: str = ""
    complete: bool = True
    redacted: bool = False
    acted: set[str] = field(default_factory=set)
    consents: dict[str, bool] = field(default_factory=dict)
    seeds: dict[int, int] = field(default_factory=dict)
    prompts: dict[int, str] = field(default_factory=dict)
    rewards: dict[int, float] = field(default_factory=dict)
    chunks: list[ChunkRow] = field(default_factory=list)
    pairs: list[tuple[float, events.PreferenceChosen]] = field(default_factory=list)
    films: tuple[RecordedFilm, ...] = ()

    @property
    def consented(self) -> bool:
        """Whether everybody whose acts are in it said, when they joined last, that they may be used."""
        return all(self.consents.get(participant, False) for participant in self.acted)

    def prompt_of(self, version: int) -> str:
        return self.prompts.get(version, "")


async def episodes(
    history: History, recordings: Recordings, names: list[str], since: float | None = None
) -> AsyncIterator[Episode]:
    """Those that were opened after `since` and begin where they were opened; others are left out."""
    for name in names:
        episode = await episode_of(history, name, since)
        if episode is None:
            continue
        films = []
        for info in recordings.of(name):
            path = recordings.path(name, info.name, ".mp4")
            if path is not None and info.frames:
                films.append(RecordedFilm(path, info))
        episode.films = tuple(films)
        yield episode


async def episode_of(history: History, session: str, since: float | None = None) -> Episode | None:
    """None for a session that was opened before `since`, or whose opening is not kept."""
    digest, episode = hashlib.sha256(), None
    begun: dict[tuple[int, int, int], events.ChunkBegun] = {}
    async for entry in history.read(session):
        if isinstance(entry, Cut):
            if episode is None:
                return None
            episode.complete = False
            continue
        digest.update(repr((entry.number, entry.event)).encode())
        if isinstance(entry.event, events.SessionOpened):
            if since is not None and entry.at < since:
                return None
            episode = Episode(session, entry.event, entry.at)
            episode.seeds[0] = entry.event.seed
        elif episode is not None:
            _take(episode, entry, begun)
    if episode is not None:
        episode.digest = digest.hexdigest()
        rewards = episode.rewards
        episode.chunks = [replace(r, reward=rewards[r.chunk]) if r.chunk in rewards else r for r in episode.chunks]
    return episode


def _take(episode: Episode, entry: Entry, begun: dict[tuple[int, int, int], events.ChunkBegun]) -> None:
    event = entry.event
    if isinstance(event, ACTS) and event.participant:
        episode.acted.add(event.participant)
    match event:
        case events.Joined():
            episode.consents[event.participant] = event.consent
        case events.EpochStarted():
            episode.seeds[event.epoch] = event.seed
        case events.PromptAsked():
            texts = event.text, *(episode.prompt_of(part.number) for part in event.parts)
            episode.prompts[event.number] = " + ".join(texts)
            episode.redacted = episode.redacted or event.text.startswith(REDACTED)
        case events.FeedbackGiven():
            episode.rewards[event.chunk] = episode.rewards.get(event.chunk, 0.0) + event.value
        case events.PreferenceChosen():
            episode.pairs.append((entry.at, event))
        case events.ChunkBegun():
            begun[entry.branch, event.conditions.epoch, event.chunk] = event
        case events.ChunkDropped():
            begun.pop((entry.branch, event.epoch, event.chunk), None)
        case events.ChunkCommitted():
            asked = begun.pop((entry.branch, event.epoch, event.chunk), None)
            if asked is not None:
                episode.chunks.append(_row(episode, entry, event, asked))
        case _:
            pass


def _row(episode: Episode, entry: Entry, done: events.ChunkCommitted, asked: events.ChunkBegun) -> ChunkRow:
    conditions = asked.conditions
    return ChunkRow(
        chunk=done.chunk,
        epoch=done.epoch,
        branch=entry.branch,
        at=entry.at,
        prompt=episode.prompt_of(conditions.prompt_version),
        action=conditions.pressed,
        pointer=conditions.pointer,
        digest=done.digest,
        late_us=done.late_us,
        reward=0.0,
    )
