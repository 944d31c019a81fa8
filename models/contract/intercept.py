"""Interceptors: what may answer a step in the device's place (a skipped pass) or change it (a cached block). Pure.

    advance(result) -> inner.advance -> note -> [ next step answered? -> inner.advance(answer) -> note ]* -> waits

An intercepted loop is a loop like any other. What its interceptor knows of a row lies beside the inner state and
travels with the carry, so it is batched, cancelled, saved, restored and replayed with it. A loop without an interceptor
is not wrapped: the hot path does not know that there are any.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from .cache_key import CacheKey, adapter_keys, key_of
from .loaded import LoadedCard
from .loop import Ask, ChunkLoop, Commit, Done, Outcome, WorkPlan

Own = TypeVar("Own", bound=msgspec.Struct)
State = TypeVar("State", bound=msgspec.Struct)
State_contra = TypeVar("State_contra", bound=msgspec.Struct, contravariant=True)
Carry = TypeVar("Carry", bound=msgspec.Struct)
Row = TypeVar("Row")
Result = TypeVar("Result")


class ExactMode(ValueError):
    """An interceptor was asked of a card that runs exactly; the message names both."""


class CommitAnswered(RuntimeError):
    """An interceptor answered a step that writes the cache: what it should have written would be missing."""


@dataclass(frozen=True, slots=True)
class Intercept(Generic[Result]):
    """The step does not run; this is its result."""

    result: Result


class Intercepted(msgspec.Struct, Generic[State, Own], frozen=True, forbid_unknown_fields=True):
    """The state of a chunk under way, and what the interceptor knows of it."""

    inner: State
    own: Own
    key: str


class Carried(msgspec.Struct, Generic[Carry, Own], frozen=True, forbid_unknown_fields=True):
    """A carry and what the interceptor takes along. A family's interceptor names its own subclass, for snapshots.

    `key`: digest of everything that what it learnt holds for, see `InterceptedLoop`.
    """

    inner: Carry
    own: Own
    key: str


class Interceptor(Protocol[State_contra, Row, Result, Carry, Own]):
    """Stateless: everything it learns of a row is `Own`. Deterministic, or replay would not be."""

    @property
    def name(self) -> str: ...

    @property
    def carried(self) -> type[Carried[Carry, Own]]: ...

    def start(self) -> Own:
        """Before the first chunk of a world."""
        ...

    def decide(self, own: Own, state: State_contra, plan: WorkPlan[Row]) -> WorkPlan[Row] | Intercept[Result]:
        """The plan as it is, a changed one, or its result."""
        ...

    def note(self, own: Own, state: State_contra, result: Result, answered: bool) -> Own:
        """Learn from a step's result; `state` is the one before it, `answered`: it did not run."""
        ...


class InterceptedLoop(Generic[State, Row, Result, Carry, Own]):
    """See the module docstring. `made_by`: key of the card; what was learnt under another prompt, step count, seed or
    adapter is forgotten.
    """

    def __init__(
        self,
        loop: ChunkLoop[State, Row, Result, Carry],
        interceptor: Interceptor[State, Row, Result, Carry, Own],
        made_by: CacheKey,
    ) -> None:
        self._loop, self._interceptor, self._made_by = loop, interceptor, made_by

    def init(self, ask: Ask[Carried[Carry, Own]]) -> Intercepted[State, Own]:
        key = step_key(self._made_by, ask).digest
        own = self._interceptor.start() if ask.carry is None or ask.carry.key != key else ask.carry.own
        carry = None if ask.carry is None else ask.carry.inner
        inner: Ask[Carry] = replace(ask, carry=carry)  # type: ignore[assignment,arg-type]
        return self._settled(Intercepted(self._loop.init(inner), own, key))

    def next(self, state: Intercepted[State, Own]) -> WorkPlan[Row] | Done:
        decided = self._decided(state)
        if isinstance(decided, Intercept):
            raise ValueError("an answered step was already advanced: this state is not the loop's own")
        return decided

    def advance(self, state: Intercepted[State, Own], result: Result) -> Intercepted[State, Own]:
        return self._settled(self._advanced(state, result, answered=False))

    def finalize(self, state: Intercepted[State, Own]) -> Outcome[Carried[Carry, Own]]:
        outcome = self._loop.finalize(state.inner)
        carry = self._interceptor.carried(outcome.carry, state.own, state.key)
        return Outcome(outcome.frames, carry, outcome.latents)

    def early_carry(self, state: Intercepted[State, Own]) -> Carried[Carry, Own] | None:
        carry = self._loop.early_carry(state.inner)
        return None if carry is None else self._interceptor.carried(carry, state.own, state.key)

    def rebase(self, state: Intercepted[State, Own], carry: Carried[Carry, Own]) -> Intercepted[State, Own]:
        return Intercepted(self._loop.rebase(state.inner, carry.inner), state.own, state.key)

    def _settled(self, state: Intercepted[State, Own]) -> Intercepted[State, Own]:
        """The state at the next step that runs."""
        while isinstance(decided := self._decided(state), Intercept):
            state = self._advanced(state, decided.result, answered=True)
        return state

    def _decided(self, state: Intercepted[State, Own]) -> WorkPlan[Row] | Intercept[Result] | Done:
        plan = self._loop.next(state.inner)
        if isinstance(plan, Done):
            return plan
        decided = self._interceptor.decide(state.own, state.inner, plan)
        if isinstance(decided, Intercept) and plan.commit is not Commit.NONE:
            raise CommitAnswered(f"{self._interceptor.name} answered a {plan.kind} step that commits {plan.commit}")
        return decided

    def _advanced(self, state: Intercepted[State, Own], result: Result, answered: bool) -> Intercepted[State, Own]:
        own = self._interceptor.note(state.own, state.inner, result, answered)
        return Intercepted(self._loop.advance(state.inner, result), own, state.key)


def step_key(made_by: CacheKey, ask: Ask[Any]) -> CacheKey:
    """Of what is learnt from the steps of one chunk and used in those of another."""
    asked = ask.conditions
    key = made_by.part(
        "step cache",
        inputs=(f"{share.weight!r}*{share.key}" for share in asked.prompts),
        adapters=adapter_keys(asked.adapters),
        step=f"{ask.steps} steps",
    )
    return msgspec.structs.replace(key, seed=ask.seed)


def intercept(loaded: LoadedCard, interceptor: Interceptor[Any, Any, Any, Any, Any]) -> LoadedCard:
    """The card with the interceptor in front of its steps; raises `ExactMode`."""
    if loaded.card.parity.exact:
        raise ExactMode(f"'{interceptor.name}' changes results: card '{loaded.card.name}' runs in exact mode")
    loops = {**loaded.loops, loaded.card.main_loop: InterceptedLoop(loaded.loop, interceptor, key_of(loaded))}
    return replace(loaded, loops=loops, carry=interceptor.carried)
