"""One card as the engine serves it: its slots, the step sequence of its chunks, what that costs, and its counters."""

from collections import defaultdict
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
from .counters import Counters
from .drive import LoopFault
from .output.playout import Allowance, Lead
from .scheduling.costs import Costs, Estimate, StepKey

_NO_CACHE = CacheSpec(ring=2, bytes_per_entry=0)


def bytes_of(loaded: LoadedCard) -> CardBytes:
    return card_bytes(loaded.card, loaded.footprint, loaded.choice.precision)


def slowed(loaded: LoadedCard, fps: int | None) -> LoadedCard:
    """The card with no more pictures a second than this: its world's clock goes slower."""
    frame = loaded.card.frame
    if fps is None or fps >= frame.fps:
        return loaded
    return replace(loaded, card=replace(loaded.card, frame=replace(frame, fps=fps)))


@dataclass(slots=True)
class CardRuntime:
    """`profiles` holds the steps of the last finished chunk, `chunks` the device-seconds of whole ones, `leads` the way
    to the first packet, all by number of denoise steps: they predict the next chunk. `writing`: seconds of one
    run of the prompt loop. `counters`: of sessions that are gone.
    """

    loaded: LoadedCard
    pool: SlabPool
    allowance: Allowance
    profiles: dict[int, tuple[StepKey, ...]] = field(default_factory=dict)
    chunks: dict[int, Estimate] = field(default_factory=dict)
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

    def key(self, loop: str, kind: StepKind, shape: tuple[int, ...] = ()) -> StepKey:
        return StepKey(self.loaded.card.name, loop, kind, shape, self.loaded.choice.precision)

    def prompt_key(self, text: str) -> str:
        return key_of(self.loaded).part("prompt", inputs=(content_of(text),)).digest

    def finished(self, steps: int, profile: Sequence[StepKey], seconds: float) -> None:
        """Learn from a finished chunk: its steps and the device-seconds they took together."""
        self.profiles[steps] = tuple(profile)
        self.chunks.setdefault(steps, Estimate()).observe(seconds)

    def chunk_price(self, steps: int) -> float:
        """Conservative device-seconds of a whole chunk; 0 before the first one."""
        return self.chunks[steps].conservative if steps in self.chunks else 0.0

    def load(self, costs: Costs, steps: int) -> float:
        """Conservative seconds that a chunk takes of the busier of the device's threads."""
        whole, aux = self.chunk_price(steps), self.aux_seconds(costs, steps)
        written = self.writing.conservative / max(1, self.loaded.card.prompt_every)
        return max(whole - aux + written, aux)

    def aux_seconds(self, costs: Costs, steps: int) -> float:
        """Seconds that a chunk takes of the auxiliary thread, on average."""
        where = self.loaded.card.program.where
        return sum(
            costs.mean(key, 1) for key in self.profiles.get(steps, ()) if where(key.loop, key.kind) is Placement.AUX
        )

    def lead(self, steps: int, encode: float) -> float:
        """Seconds from asking for a chunk's conditions to its first packet; `encode` counts until that was seen."""
        return self.leads[steps].value(self.chunk_price(steps) + encode) + self.allowance.value

    def forecast(self, costs: Costs | None, steps: int, done: int, current: StepKey) -> tuple[float, StepKey | None]:
        """Of a chunk of which `done` steps are over: seconds for `current`, conservatively, and for what follows it, on
        average; and the step that should follow it on its thread. Without `costs` the seconds are 0.
        """
        where = self.loaded.card.program.where
        there = where(current.loop, current.kind)
        following = self.profiles.get(steps, ())[done + 1 :]
        then = next((key for key in following if where(key.loop, key.kind) is there), None)
        if costs is None:
            return 0.0, then
        return costs.price(current, 1) + sum(costs.mean(key, 1) for key in following), then

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
