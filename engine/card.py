"""One card as the engine serves it: its slots, the step sequence of its chunks, what that costs, and its counters."""

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..models.contract.cache import CacheSpec
from ..models.contract.cache_key import content_of, key_of
from ..models.contract.loaded import LoadedCard
from ..models.contract.loop import StepKind, WorkPlan
from ..models.contract.placement import Placement
from ..models.holding import CardBytes, card_bytes
from .api import CardInfo, ControlInfo, FirstFramesSize
from .caches.slab_pool import SlabPool
from .caches.weights_io import ClearEntry, ReadWeights, WeightsRow, WriteWeights
from .counters import Counters
from .drive import LoopFault
from .scheduling.costs import Costs, Estimate, StepKey

_NO_CACHE = CacheSpec(ring=2, bytes_per_entry=0)
SHARED, ALONE = 0.9995, 0.999
"""What is left of an allowance after a punctual chunk."""


def bytes_of(loaded: LoadedCard) -> CardBytes:
    return card_bytes(loaded.card, loaded.footprint, loaded.choice.precision)


def slowed(loaded: LoadedCard, fps: int | None) -> LoadedCard:
    """The card with no more pictures a second than this: its world's clock goes slower."""
    frame = loaded.card.frame
    if fps is None or fps >= frame.fps:
        return loaded
    return replace(loaded, card=replace(loaded.card, frame=replace(frame, fps=fps)))


class Lead:
    """Seconds from asking for a chunk's conditions to its first packet, as long as nobody else's steps are in between.

    One quantile of the whole way: the sum of every part's own bad case would be kept ready far too early. A share of
    frames may come a little late, which the playout clock absorbs.
    """

    def __init__(self, share: float = 0.75, window: int = 48, enough: int = 8) -> None:
        self._share, self._enough = share, enough
        self._recent: deque[float] = deque(maxlen=window)

    def observe(self, seconds: float) -> None:
        self._recent.append(seconds)

    def value(self, unknown: float) -> float:
        """`unknown` until enough chunks have been seen."""
        if len(self._recent) < self._enough:
            return unknown
        ranked = sorted(self._recent)
        return ranked[math.ceil(len(ranked) * self._share) - 1]


@dataclass(slots=True)
class Allowance:
    """Seconds kept for the steps of others, learnt from chunks that were late because others stood before them.

    A late chunk adds what it waited or was late by, whichever is less, up to `most`. A punctual one that had to wait
    takes little back, one that had the device to itself more: who is alone again is quick again. All sessions of a card
    learn together.
    """

    most: float
    value: float = 0.0

    def finished(self, late: float, waited: float) -> None:
        if late > 0:
            self.value = min(self.most, self.value + min(late, waited))
        else:
            self.value *= SHARED if waited > 0 else ALONE


@dataclass(slots=True)
class CardRuntime:
    """`profiles` holds the steps of the last finished chunk, `chunks` the device-seconds of whole ones and `auxiliary`
    those of their steps on the auxiliary thread, `leads` the way to the first packet, all by number of denoise steps:
    they predict the next chunk. Of a batch a chunk has its own part. `writing`: seconds of one run of the prompt loop.
    `counters`: of sessions that are gone.
    """

    loaded: LoadedCard
    pool: SlabPool
    allowance: Allowance
    profiles: dict[int, tuple[StepKey, ...]] = field(default_factory=dict)
    chunks: defaultdict[int, Estimate] = field(default_factory=lambda: defaultdict(Estimate))
    auxiliary: defaultdict[int, Estimate] = field(default_factory=lambda: defaultdict(Estimate))
    encoding: Estimate = field(default_factory=Estimate)
    writing: Estimate = field(default_factory=Estimate)
    counters: Counters = field(default_factory=Counters)
    leads: defaultdict[int, Lead] = field(default_factory=lambda: defaultdict(Lead))

    @classmethod
    def with_slots(cls, loaded: LoadedCard, slots: int) -> "CardRuntime":
        cache, frame = loaded.card.cache or replace(_NO_CACHE, carry_bytes=bytes_of(loaded).session), loaded.card.frame
        pool = SlabPool(cache, slots)
        return cls(loaded, pool, Allowance(most=frame.per_chunk / frame.fps))

    @property
    def chunk_seconds(self) -> float:
        return self.loaded.card.frame.per_chunk / self.loaded.card.frame.fps

    @property
    def default_steps(self) -> int:
        return self.loaded.choice.steps

    def step_key(self, plan: WorkPlan[Any], loop: str | None = None) -> StepKey:
        """`loop` None = the card's main loop. Raises `LoopFault` for a step that the card does not name."""
        name = self.loaded.card.main_loop if loop is None else loop
        spec = next(spec for spec in self.loaded.card.loops if spec.name == name)
        if plan.kind not in spec.steps:
            raise LoopFault(f"{name} asks for a '{plan.kind}' step, the card names {', '.join(spec.steps)}")
        return self.key(name, plan.kind, plan.shape)

    def prompt_step(self) -> StepKey:
        return self.key("", StepKind.PROMPT_ENCODE)

    def cache_step(self) -> StepKey:
        return self.key("", StepKind.CACHE_IO)

    def weights_step(self, row: WeightsRow) -> StepKey:
        """A slice of weights to or from the host; an entry cleared; memory taken or given back."""
        match row:
            case ReadWeights() | WriteWeights():
                shape: tuple[int, ...] = ()
            case ClearEntry():
                shape = (2,)
            case _:
                shape = (1,)
        return self.key("", StepKind.WEIGHTS_IO, shape)

    def key(self, loop: str, kind: StepKind, shape: tuple[int, ...] = ()) -> StepKey:
        return StepKey(self.loaded.card.name, loop, kind, shape, self.loaded.choice.precision)

    def prompt_key(self, text: str) -> str:
        return key_of(self.loaded).part("prompt", inputs=(content_of(text),)).digest

    def finished(
        self,
        steps: int,
        profile: Sequence[StepKey],
        seconds: Sequence[float],
        late: float | None = None,
        waited: float = 0.0,
    ) -> None:
        """Learn from a finished chunk: its steps, the device-seconds of each, and how late it can be shown after
        waiting for others so long (None: that teaches nothing).
        """
        self.profiles[steps] = tuple(profile)
        self.chunks[steps].observe(sum(seconds))
        where, took = self.loaded.card.program.where, zip(profile, seconds, strict=True)
        self.auxiliary[steps].observe(sum(each for key, each in took if where(key.loop, key.kind) is Placement.AUX))
        if late is not None:
            self.allowance.finished(late, waited)

    def chunk_price(self, steps: int) -> float:
        """Conservative device-seconds of a whole chunk; 0 before the first one."""
        return self.chunks[steps].conservative if steps in self.chunks else 0.0

    def load(self, steps: int) -> float:
        """Conservative seconds that a chunk takes of the busier of the device's threads."""
        whole, aux = self.chunk_price(steps), self.auxiliary[steps].mean
        written = self.writing.conservative / max(1, self.loaded.card.prompt_every)
        return max(whole - aux + written, aux)

    @property
    def decodes_beside(self) -> bool:
        """Whether a chunk's pictures are made beside the device's queue, so that the next chunk may begin before."""
        card = self.loaded.card
        return card.program.where(card.main_loop, StepKind.DECODE) is Placement.AUX

    def aux_seconds(self, costs: Costs, steps: int) -> float:
        """Seconds that a chunk is on the auxiliary thread, on average, when it is alone there."""
        where = self.loaded.card.program.where
        return sum(
            costs.mean(key, 1) for key in self.profiles.get(steps, ()) if where(key.loop, key.kind) is Placement.AUX
        )

    def lead(self, steps: int, encode: float) -> float:
        """Seconds from asking for a chunk's conditions to its first packet; `encode` counts until that was seen."""
        return self.leads[steps].value(self.chunk_price(steps) + encode) + self.allowance.value

    def forecast(
        self, costs: Costs | None, steps: int, done: int, plan: WorkPlan[Any]
    ) -> tuple[StepKey, float, StepKey | None]:
        """Of a chunk of which `done` steps are over: its next step; seconds for that, conservatively, and for what
        follows it, on average (0 without `costs`); and the step that should follow it on its thread. Raises what
        `step_key` does.
        """
        key, where = self.step_key(plan), self.loaded.card.program.where
        there, following = where(key.loop, key.kind), self.profiles.get(steps, ())[done + 1 :]
        then = next((later for later in following if where(later.loop, later.kind) is there), None)
        return key, 0.0 if costs is None else costs.remaining(key, following), then

    def info(self, adapters: tuple[str, ...] = ()) -> CardInfo:
        """`adapters`: names of all that this server has."""
        card, frame, able = self.loaded.card, self.loaded.card.frame, self.loaded.card.capabilities
        return CardInfo(
            name=card.name,
            version=card.version,
            title=card.title,
            width=frame.shown_width,
            height=frame.shown_height,
            fps=frame.fps,
            frames_per_chunk=frame.per_chunk,
            controls=tuple(ControlInfo(control.name, control.keys, control.analog) for control in card.controls),
            suggestions=card.suggestions,
            price_us=round(self.chunk_price(self.default_steps) * 1e6),
            bytes_per_session=self.pool.spec.bytes_per_session,
            first_frames=self._first_frames(),
            recache=self.loaded.card.asks(StepKind.RECACHE),
            about=card.about,
            pointer=card.pointer,
            prompt_chars=card.prompt_chars,
            prompts_max=card.prompts_max,
            adapters=() if self.loaded.adapters is None else adapters,
            takes=able.takes,
            gives=able.gives,
            previews=able.previews,
            players=card.players,
            tolerance=card.parity.tolerance,
        )

    @property
    def portable(self) -> bool:
        """Whether its worlds can be written down."""
        return self.loaded.carry is not None

    def _first_frames(self) -> FirstFramesSize | None:
        frame = self.loaded.card.frame
        return (
            FirstFramesSize(frame.width, frame.height, frame.frames(opens=True))
            if self.loaded.card.asks(StepKind.ENCODE)
            else None
        )
