"""The prompt loop of one parity session: its runs, one step at a time, and what they wrote.

    chunks     0   1   2   3   4   5   6   7   8          a run begins with every `every`-th chunk, from the carry so
    runs       [ run 0       ] [ run 1       ] [ ..       far; what it wrote steers from the next run's first chunk on

Shares no code with the engine's own, so that the two can be held against each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..contract.cache import CacheView
from ..contract.loaded import LoadedCard
from ..contract.loop import Done, PromptAsk, WorkPlan


@dataclass(slots=True)
class ParityPrompts:
    """`plan` is the step it waits for; `written` the embedding that steers now."""

    loaded: LoadedCard
    seed: int
    features: Callable[[str], object]
    plan: WorkPlan[Any] | None = None
    written: object | None = None
    text: str = ""
    carry: Any = None
    _state: Any = None

    @property
    def name(self) -> str:
        """Of the loop whose steps these are."""
        return self.loaded.card.prompt_loop or ""

    def may_begin(self, chunk: int) -> bool:
        """Whether a chunk need not wait for a run to end."""
        return self.plan is None or not self._turns(chunk)

    def begin(self, chunk: int, carry: Any) -> None:
        """A chunk begins, from this carry of the main loop."""
        loop = self.loaded.prompt_loop
        if loop is None or not self._turns(chunk):
            return
        if self.text:
            self.written = self.features(self.text)
        run = chunk // self.loaded.card.prompt_every
        self._state = loop.init(PromptAsk(self.seed, 0, run, self.carry, carry))
        self._next()

    def view(self) -> CacheView | None:
        """Its steps see no cache."""
        return None

    def advance(self, result: object) -> None:
        loop = self.loaded.prompt_loop
        assert loop is not None, "only a card with a prompt loop has such a step"
        self._state = loop.advance(self._state, result)
        self._next()

    def _next(self) -> None:
        loop = self.loaded.prompt_loop
        assert loop is not None, "only a card with a prompt loop has such a step"
        plan = loop.next(self._state)
        if isinstance(plan, Done):
            outcome = loop.finalize(self._state)
            self.plan, self.text, self.carry = None, outcome.text, outcome.carry
        else:
            self.plan = plan

    def _turns(self, chunk: int) -> bool:
        return self.loaded.prompt_loop is not None and chunk % self.loaded.card.prompt_every == 0
