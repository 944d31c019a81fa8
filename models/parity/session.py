"""The smallest engine: one session on one slot, stage and commit by the book, one step at a time.

Used to measure families, never to serve: no prices, no deadlines, no threads. Shares no code with the engine's own
drive, so that the two can be held against each other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..contract.cache import CacheSpec, CacheView
from ..contract.conditions import Conditions, PlayerInput, PromptShare
from ..contract.loaded import LoadedCard
from ..contract.loop import Ask, Commit, Done, Outcome, WorkPlan
from .prompts import ParityPrompts


@dataclass(frozen=True, slots=True)
class ChunkInput:
    """What steers one chunk; `prompt` is one text (a card encodes it), `mix` several with weights instead of it,
    `others` further players.
    """

    controls: tuple[float, ...]
    pointer: tuple[float, float]
    prompt: str
    recache: bool = False
    mix: tuple[tuple[str, float], ...] = ()
    others: tuple[PlayerInput, ...] = ()

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        return self.mix or ((self.prompt, 1.0),)


@dataclass(slots=True)
class ParitySession:
    """One world. `plan` is the step it waits for; `advance` takes that step's result and says when a chunk is done.
    `first_frames_FHWC`: what it begins from.
    """

    loaded: LoadedCard
    slot: int
    seed: int
    inputs: Sequence[ChunkInput]
    features: Callable[[str], object]
    first_frames_FHWC: NDArray[np.uint8] | None = None
    committed: tuple[int, ...] = ()
    commits: int = 0
    carry: Any = None
    outcomes: list[Outcome[Any]] = field(default_factory=list)
    plan: WorkPlan[Any] | None = None
    prompts: ParityPrompts = field(init=False)
    state: Any = None
    _rebuilt: tuple[int, ...] = ()
    _staged: bool = False

    def __post_init__(self) -> None:
        self.prompts = ParityPrompts(self.loaded, self.seed, self.features)

    @property
    def name(self) -> str:
        """Of the loop whose steps these are."""
        return self.loaded.card.main_loop

    @property
    def may_begin(self) -> bool:
        """No chunk is under way, and the next one need not wait for its prompt."""
        return self.plan is None and self.prompts.may_begin(len(self.outcomes))

    @property
    def cache(self) -> CacheSpec | None:
        return self.loaded.card.cache

    @property
    def finished(self) -> bool:
        return len(self.outcomes) == len(self.inputs)

    def begin(self) -> None:
        """Start the next chunk; its first step is then in `plan`."""
        given = self.inputs[len(self.outcomes)]
        self.prompts.begin(len(self.outcomes), self.carry)
        shares = tuple(PromptShare(text, weight) for text, weight in given.shares)
        conditions = Conditions(0, given.controls, given.pointer, shares, 1, 0, given.recache, others=given.others)
        ask = Ask(
            seed=self.seed,
            branch=0,
            chunk=len(self.outcomes),
            steps=self.loaded.choice.steps,
            conditions=conditions,
            features=tuple((self.features(text), weight) for text, weight in given.shares),
            carry=self.carry,
            committed=self.commits,
            first_frames_FHWC=self.first_frames_FHWC if self.carry is None else None,
            written=self.prompts.written,
        )
        self.state, self._rebuilt, self._staged = self.loaded.loop.init(ask), (), False
        self._next()

    def view(self) -> CacheView | None:
        """The slot as the waiting step sees it."""
        if self.cache is None:
            return None
        free = [entry for entry in range(self.cache.ring) if entry not in self.committed]
        return CacheView(self.slot, self.committed, free[0], tuple(free[1 : 1 + self.cache.rebuild]))

    def advance(self, result: object) -> Outcome[Any] | None:
        """Take the waiting step's result; the outcome when that finished the chunk."""
        plan, view = self.plan, self.view()
        if plan is None:
            raise ValueError("no step waits: begin a chunk first")
        if plan.commit is Commit.CHUNK:
            self._staged = True
        if plan.rebuilt and view is not None:
            self._rebuilt = view.spare[: plan.rebuilt]
        if plan.commit is Commit.PREVIOUS and view is not None:
            self._commit((), (view.staged,))
        self.state = self.loaded.loop.advance(self.state, result)
        return self._next()

    def run(self) -> Iterator[Outcome[Any]]:
        """All chunks, alone on the device."""
        while not self.finished:
            while not self.prompts.may_begin(len(self.outcomes)) and (plan := self.prompts.plan) is not None:
                (result,) = self.loaded.runtime.execute(plan.kind, [plan.row], [None])
                self.prompts.advance(result)
            if self.plan is None:
                self.begin()
            if self.plan is not None:
                (result,) = self.loaded.runtime.execute(self.plan.kind, [self.plan.row], [self.view()])
                if (outcome := self.advance(result)) is not None:
                    yield outcome

    def _next(self) -> Outcome[Any] | None:
        plan = self.loaded.loop.next(self.state)
        if not isinstance(plan, Done):
            self.plan = plan
            return None
        outcome = self.loaded.loop.finalize(self.state)
        view = self.view()
        if view is not None:
            self._commit(self._rebuilt, (view.staged,) if self._staged else ())
        self.carry, self.plan = outcome.carry, None
        self.outcomes.append(outcome)
        return outcome

    def _commit(self, rebuilt: tuple[int, ...], staged: tuple[int, ...]) -> None:
        if self.cache is None or not (rebuilt or staged):
            return
        self.committed = self.cache.kept(self.committed, rebuilt, staged)
        self.commits += len(staged)

    def alone(self, slot: int) -> "ParitySession":
        """The same world from its beginning, on another slot."""
        return replace(
            self, slot=slot, committed=(), commits=0, carry=None, outcomes=[], plan=None, state=None, _rebuilt=()
        )
