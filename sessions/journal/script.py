"""What a session did, read from its journal: every chunk that was committed, epoch by epoch, and what led to it.

    epoch 0 | 1: anew | 2: back in 1 | 3, 4: beside 2 | 5: by other weights        each knows which one it goes on from

A session that goes on from a moment of another one has that one's script as its `parent`, and begins in its epoch.

Knows no engine that runs.
"""

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field, replace

from ...engine import api
from ..messages import AdapterChoice
from . import events
from .archive import ArchiveError
from .entry import JournalVersion
from .history import History, JournalCut
from .store import StoreError


class ReplayError(RuntimeError):
    """The journal cannot be played again here, and why."""


class ParentLost(ReplayError):
    """The session goes on from another one, of which is not there what it needs; which, and what is missing."""


SCRIPT_FAULTS = (StoreError, ArchiveError, JournalVersion, JournalCut, ReplayError, api.UnknownContract)
"""What `read_session` raises."""


@dataclass(frozen=True, slots=True)
class CommittedChunk:
    chunk: int
    conditions: api.Conditions
    digest: str


@dataclass(frozen=True, slots=True)
class MadeBy:
    """What chunks were computed with."""

    weights: str
    steps: int
    precision: str
    mode: str = ""
    machine: str = ""

    @classmethod
    def of(cls, said: api.Opened | events.SessionOpened | events.WeightsLoaded) -> "MadeBy":
        return cls(said.weights, said.steps, said.precision, said.mode, said.machine)

    def same_as(self, other: "MadeBy") -> bool:
        """But for the machine, on which only last bits may depend."""
        return str(self) == str(other)

    def __str__(self) -> str:
        return f"weights '{self.weights}', {self.steps} steps, {self.precision} {self.mode or 'as usual'}"


@dataclass(frozen=True, slots=True)
class EpochScript:
    """One start of the world, or another future of it (`turned`), and the chunks that were committed from there.

    `made`: what computed them, None = as the session was opened. `after`: the epoch that played until then. `fresh`: it
    owes nothing to what was before it.
    """

    epoch: int
    seed: int
    chunks: tuple[CommittedChunk, ...]
    made: MadeBy | None = None
    first_frames: api.FirstFrames | None = None
    turned: events.WorldTurned | None = None
    after: int = 0
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """Futures that nobody has chosen between yet, by their epochs: those `beside` the one that plays, or the one that
    stands still (`still`). They part before chunk `first`.
    """

    first: int
    beside: tuple[int, ...] = ()
    still: int | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """What a session did. `texts`: every prompt by its embedding key; `embeddings`: those whose text was redacted.
    `playing`: the epoch that goes on; `choice`: between it and others. `asked`: prompts by their numbers; `ready`:
    their keys; `stacks`: adapters by their shares. `parent`: of the session that `opened.origin` names.
    """

    opened: events.SessionOpened
    texts: Mapping[str, str]
    epochs: tuple[EpochScript, ...]
    embeddings: Mapping[str, bytes] = field(default_factory=dict)
    playing: int = 0
    asked: Mapping[int, events.PromptAsked] = field(default_factory=dict)
    stacks: Mapping[tuple[api.AdapterShare, ...], tuple[AdapterChoice, ...]] = field(default_factory=dict)
    ready: Mapping[int, str] = field(default_factory=dict)
    choice: OpenChoice | None = None
    parent: "Script | None" = None

    @property
    def first(self) -> int:
        """The epoch in which it begins."""
        return 0 if self.opened.origin is None else self.opened.origin.epoch

    def of(self, epoch: int) -> EpochScript:
        return next(each for each in self.epochs if each.epoch == epoch)

    def made(self, script: EpochScript) -> MadeBy:
        return script.made or MadeBy.of(self.opened)

    def branch(self, epoch: int) -> int:
        """Of the world that an epoch plays."""
        script = self.of(epoch)
        if script.turned is not None:
            return script.turned.branch
        return self.opened.branch if epoch == self.first else self.branch(script.after)

    def noise(self, epoch: int) -> int:
        """The branch that the noise of an epoch is of."""
        script = self.of(epoch)
        if script.turned is not None:
            return script.turned.noise_of
        if epoch != self.first:
            return self.noise(script.after)
        return self.opened.branch if self.parent is None else self.parent.noise(self.first)

    def same_world(self, epoch: int, other: int) -> bool:
        """Whether both epochs played in the same world of the engine, one start after the other."""
        return self.world(epoch) == self.world(other)

    def world(self, epoch: int) -> int:
        """The epoch with which that world began."""
        script = self.of(epoch)
        return epoch if script.turned is not None or script.fresh or epoch == self.first else self.world(script.after)

    def root(self, epoch: int) -> EpochScript:
        """The epoch with whose opening the history of this one begins."""
        script = self.of(epoch)
        if script.fresh or epoch == self.first:
            return script
        return self.root(script.after if script.turned is None else script.turned.base)

    def opening(self, epoch: int, session: str, latency_class: api.LatencyClass) -> api.Open:
        """With which the world of an epoch can be made under that name."""
        root = self.root(epoch)
        if self.parent is not None and root.epoch == self.first:
            return self.parent.opening(root.epoch, session, latency_class)
        return api.Open(
            session=session,
            card=self.opened.card,
            seed=root.seed,
            latency_class=latency_class,
            branch=self.noise(root.epoch),
            steps=self.made(root).steps or None,
        )

    def history(self, epoch: int, session: str, until: int | None = None) -> tuple[api.HistoryStep, ...]:
        """All that made the world with which an epoch ends, or that before chunk `until` of it, from its opening on."""
        script = self.of(epoch)
        made = [each for each in script.chunks if until is None or each.chunk < until]
        return (*self.before(script, session), *(api.Begin(session, each.chunk, each.conditions) for each in made))

    def written_down(
        self,
        engine: api.SuspendableEngine,
        opening: api.Open,
        history: tuple[api.HistoryStep, ...],
        progress: api.Progress,
        since: str = "",
    ) -> bytes:
        """A world with the prompts of this script, for `restore`; parameters as of `SuspendableEngine.written_down`."""
        texts, embeddings = tuple(self.texts.values()), tuple(self.embeddings.items())
        return engine.written_down(opening, history, texts, progress, embeddings, since)

    def before(self, script: EpochScript, session: str) -> tuple[api.HistoryStep, ...]:
        """All that made the world with which an epoch begins."""
        turned = script.turned
        origin = self.opened.origin
        if origin is not None and self.parent is not None and script.epoch == self.first:
            return self.parent.history(origin.epoch, session, origin.chunk)
        if script.fresh or script.epoch == self.first:
            return ()
        if turned is None:
            again = api.Supersede(session, script.epoch, True, script.seed, script.first_frames)
            return (*self.history(script.after, session), again)
        steps = []
        for step in self.history(turned.base, session):
            if isinstance(step, api.Begin) and step.chunk >= turned.chunk:
                break
            steps.append(step)
        return (*steps, api.Branched(session, turned.chunk, turned.noise_of))


class _Reading:
    """What was read up to now."""

    def __init__(self) -> None:
        self.opened: events.SessionOpened | None = None
        self.made = MadeBy("", 0, "")
        self.fresh = True
        self.starts: dict[int, EpochScript] = {}
        self.playing = 0
        self.beside: dict[int, int] = {}
        """Epochs of the futures that stand side by side now, by their branch."""
        self.choice: OpenChoice | None = None
        self.branches = {0}
        self.asked: dict[int, events.PromptAsked] = {}
        self.stacks: dict[int, tuple[AdapterChoice, ...]] = {}
        self.shares: dict[tuple[api.AdapterShare, ...], tuple[AdapterChoice, ...]] = {(): ()}
        self.ready: dict[int, str] = {}
        self.texts: dict[str, str] = {}
        self.embeddings: dict[str, bytes] = {}
        self.begun: dict[tuple[int, int], api.Conditions] = {}
        self.done: dict[int, list[CommittedChunk]] = {}

    def take(self, event: events.JournalEvent) -> None:
        match event:
            case events.SessionOpened():
                api.check_contract("this journal", event.contract, since=api.JOURNALS_SINCE)
                self.opened, self.made = event, MadeBy.of(event)
                self.playing = 0 if event.origin is None else event.origin.epoch
                self._start(self.playing, event.seed)
            case events.WeightsLoaded():
                self.made, self.fresh, self.choice = MadeBy.of(event), True, None
            case events.EpochStarted():
                self._start(event.epoch, event.seed, event.first_frames)
            case events.WorldTurned():
                self._turn(event)
            case events.PreferenceChosen():
                self.playing = self.beside.get(event.chosen, self.playing)
                self.choice = None
                self.beside.clear()
            case events.PromptAsked():
                self.asked[event.number] = event
            case events.PromptReady():
                self.ready[event.number] = event.key
                if event.embedding:
                    self.embeddings[event.key] = event.embedding
                else:
                    self.texts[event.key] = self.asked[event.number].text
            case events.StackAsked():
                self.stacks[event.number] = event.stack
            case events.StackReady():
                self.shares[event.shares] = self.stacks.get(event.number, ())
            case events.ChunkBegun():
                self.begun[event.conditions.epoch, event.chunk] = event.conditions
            case events.ChunkCommitted():
                conditions = self.begun[event.epoch, event.chunk]
                self.done.setdefault(event.epoch, []).append(CommittedChunk(event.chunk, conditions, event.digest))
            case _:
                pass

    def _start(self, epoch: int, seed: int, first_frames: api.FirstFrames | None = None) -> None:
        script = EpochScript(epoch, seed, (), self.made, first_frames, None, self.playing, self.fresh)
        self.starts[epoch], self.playing, self.fresh = script, epoch, False
        self.beside.clear()

    def _turn(self, event: events.WorldTurned) -> None:
        seed = self.starts[event.base].seed
        self.starts[event.epoch] = EpochScript(event.epoch, seed, (), self.made, None, event, self.playing)
        if event.beside:
            self.beside[event.branch] = event.epoch
            self.choice = OpenChoice(event.chunk, beside=tuple(self.beside.values()))
        else:
            back = event.branch not in self.branches  # else on in a future that there was
            self.choice = OpenChoice(event.chunk, still=self.playing) if back else None
            self.playing = event.epoch
            self.beside.clear()
        self.branches.add(event.branch)


async def read(journal: AsyncIterable[events.JournalEvent]) -> Script:
    """The script in a session's events; raises `ReplayError` when it was never opened, or `UnknownContract`."""
    reading = _Reading()
    async for event in journal:
        reading.take(event)
    if reading.opened is None:
        raise ReplayError("how it was opened is not in this journal: it is not kept any more, or was deleted")
    epochs = tuple(
        replace(script, chunks=tuple(reading.done.get(epoch, ()))) for epoch, script in sorted(reading.starts.items())
    )
    found = reading.texts, epochs, reading.embeddings, reading.playing, reading.asked, reading.shares
    return Script(reading.opened, *found, reading.ready, reading.choice)


async def read_session(history: History, session: str) -> Script:
    """The script of a session, with those of the sessions that it goes on from. Raises `SCRIPT_FAULTS`."""
    script = await read(history.events(session))
    if (origin := script.opened.origin) is None:
        return script
    try:
        parent = await read_session(history, origin.session)
    except (ReplayError, JournalCut) as error:
        raise ParentLost(f"it goes on from session {origin.session}: {error}") from None
    texts, embeddings = {**parent.texts, **script.texts}, {**parent.embeddings, **script.embeddings}
    return replace(script, texts=texts, embeddings=embeddings, parent=parent)
