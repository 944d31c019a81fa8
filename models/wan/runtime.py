"""A Wan card's weights on one device: rows and cache views to results.

A denoise step reads entries and writes none; commit and recache write `staged` and `spare` alone, so committed
entries keep every bit until they fall out. `Sharing` says whether rows of several sessions share a pass, and whether
they are then still bit-equal to solo runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import msgspec
import torch
from torch import Tensor

from ...kernels.noise import gaussian
from ...kernels.philox import NoiseKey
from ...kernels.sampler_step import SamplerMove, sampler_step
from ..contract.cache import CacheView
from ..contract.card import FrameSpec
from ..contract.latents import Latents
from ..contract.loaded import Copied
from ..contract.loop import Committed, StepKind
from ..shared.adapters import Adapters
from ..shared.captured import CapturedPasses
from ..shared.compiled import CompileCache
from ..shared.slab_bytes import clear
from ..shared.steps import misplaced, needed, paired
from ..shared.video.pictures import frames_of
from ..shared.video.vae import WanVae
from .card import frame_of
from .clips.guidance import guided, stands_still
from .passes import Job, Passes
from .rows import (
    CommitRow,
    Decoded,
    DecodeRow,
    Denoised,
    DenoiseRow,
    Encoded,
    EncodeRow,
    Guide,
    Move,
    Policy,
    Prompt,
    RecacheRow,
    Sharing,
    WanResult,
    WanRow,
)
from .slab import Slab
from .spec import Rollout, WanSpec
from .text import TextEncoder
from .tiny_decoder import TinyDecoder
from .transformer import WanTransformer

_KINDS = {
    DenoiseRow: (StepKind.DENOISE,),
    CommitRow: (StepKind.COMMIT,),
    RecacheRow: (StepKind.RECACHE,),
    DecodeRow: (StepKind.DECODE, StepKind.PREVIEW),
    EncodeRow: (StepKind.ENCODE,),
}


@dataclass(frozen=True, slots=True)
class WanNetworks:
    """What a card loads. `tiny` decodes instead of the autoencoder when it is there."""

    transformer: WanTransformer
    vae: WanVae
    text: TextEncoder
    tiny: TinyDecoder | None = None


class WanRuntime:
    """See the module docstring."""

    def __init__(
        self,
        spec: WanSpec,
        networks: WanNetworks,
        dtype: torch.dtype,
        sharing: Sharing,
        narrow_kv: bool = False,
        compiled: CompileCache | None = None,
        frame: FrameSpec | None = None,
        captured: CapturedPasses | None = None,
    ) -> None:
        """`frame`: what its decode hands on; None = RGB."""
        self.spec, self.networks, self.sharing = spec, networks, sharing
        self._frame = frame_of(spec) if frame is None else frame
        if sharing is Sharing.INVARIANT:
            networks.transformer.invariant()
        each_row = sharing is not Sharing.PLAIN
        self._passes = Passes(spec, networks.transformer, dtype, narrow_kv, compiled, each_row, captured)
        self._device = self._passes.device
        self._negative = Prompt("negative", ((networks.text.encode(""), 1.0),))

    @property
    def slab(self) -> Slab:
        return self._passes.slab

    @property
    def adapters(self) -> Adapters:
        return self._passes.adapters

    def allocate(self, slots: int) -> None:
        self._passes.allocate(slots)

    def reserve(self, slots: int) -> None:
        self._passes.allocate(slots, torch.empty)

    def clear_entry(self, slot: int, entry: int) -> None:
        clear(*self.slab.entry(slot, entry))

    @torch.no_grad()
    def execute(self, kind: StepKind, rows: Sequence[WanRow], views: Sequence[CacheView | None]) -> list[WanResult]:
        pairs = paired(rows, views)
        for row in rows:
            if kind not in _KINDS[type(row)]:
                raise misplaced(kind, row)
        if self.sharing is not Sharing.ALONE:
            if kind is StepKind.DENOISE:
                return list(self._denoise([row for row in rows if isinstance(row, DenoiseRow)], views))
            if kind is StepKind.COMMIT:
                return list(self._commit([row for row in rows if isinstance(row, CommitRow)], views))
        return [self._one(row, view) for row, view in pairs]

    def encode_prompt(self, text: str) -> Tensor:
        return self.networks.text.encode(text)

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[WanRow, CacheView | None]]:
        """At a full window, after the opening chunk."""
        s, plan = self.spec.shape, self.spec.plan
        chunk = plan.chunk if isinstance(plan, Rollout) else plan.frames
        key = NoiseKey(0, 0, 0, 0)
        x = self._noise(key, (s.channels, chunk, s.rows, s.columns))
        prompt = Prompt("warm up", ((self.encode_prompt("warm up"), 1.0),))
        first = plan.window if isinstance(plan, Rollout) else 0
        row: WanRow
        match kind:
            case StepKind.DENOISE if isinstance(plan, Rollout):
                row = DenoiseRow(x, chunk, 0.9, 0.8, Move.RENOISE, key, first, prompt, context=plan.context)
            case StepKind.DENOISE:
                row = DenoiseRow(x, chunk, 0.9, 0.8, Move.EULER, key, 0, prompt, guide=Guide(Policy.BATCHED, 5.0))
            case StepKind.COMMIT:
                row = CommitRow(x, first, prompt)
            case StepKind.RECACHE:
                clean = x.repeat(1, 8, 1, 1)[:, : self.spec.rollout.kept_frames]
                row = RecacheRow(clean, first, prompt, self.spec.rollout.rebuild)
            case StepKind.DECODE:
                part = x[:, :3]
                row = DecodeRow(part, self._decode(DecodeRow(part, ())).features)
            case StepKind.PREVIEW:
                row = DecodeRow(x[:, :1], ())
            case StepKind.ENCODE:
                row = EncodeRow(torch.zeros(3, 1, self.spec.height, self.spec.width))
            case _:
                raise ValueError(f"Wan has no step '{kind}'")
        return [(row, self._full_view(slot)) for slot in range(count)]

    def read_entry(self, slot: int, entry: int) -> Copied:
        """Keys and values of one chunk, all layers, as they lie in the slab."""
        return self.slab.read_entry(slot, entry)

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        self.slab.write_entry(slot, entry, data)

    def _full_view(self, slot: int) -> CacheView | None:
        if not isinstance(plan := self.spec.plan, Rollout):
            return None
        past = plan.past_chunks
        return CacheView(slot, tuple(range(past)), past, tuple(range(past + 1, past + 1 + plan.rebuild)))

    def _one(self, row: WanRow, view: CacheView | None) -> WanResult:
        match row:
            case DenoiseRow():
                return self._denoise([row], [view])[0]
            case CommitRow():
                return self._commit([row], [view])[0]
            case RecacheRow():
                self._passes.recache(row, needed(view))
                return Committed()
            case DecodeRow():
                return self._decode(row)
            case EncodeRow():
                return Encoded(self.networks.vae.encode(row.picture_3THW[None].to(self._device))[0])
            case _:
                assert_never(row)

    # ---- denoise ----

    def _denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView | None]) -> list[Denoised]:
        """All rows in one pass; a row guided in this step is two rows of it."""
        xs = [self._start(row) for row in rows]
        jobs: list[Job] = []
        for row, x, view in zip(rows, xs, views, strict=True):
            sees = self._passes.sees(view, row.rebuilt, row.context)
            parts = [row.prompt] if row.guide is None or row.guide.part == "whole" else []
            if row.guide is not None and row.guide.negative_CFHW is None:
                parts.append(msgspec.structs.replace(self._negative, adapters=row.prompt.adapters))
            jobs += [Job(x, row.told, prompt, row.first_frame, sees) for prompt in parts]
        velocities = iter(self._passes.velocities(jobs))
        results = []
        for row, x in zip(rows, xs, strict=True):
            velocity, guide = next(velocities), row.guide
            if guide is not None and guide.part == "whole":
                negative = guide.negative_CFHW if guide.negative_CFHW is not None else next(velocities)
                velocity = guided(guide.policy, guide.scale, velocity, negative.to(self._device))
                if stands_still(guide.policy, row.sigma):
                    velocity = torch.zeros_like(velocity)
            wanted = guide is not None and guide.part == "negative"
            results.append(Denoised(velocity if wanted else self._moved(row, x, velocity)))
        return results

    def _start(self, row: DenoiseRow) -> Tensor:
        if row.x_CFHW is not None:
            return row.x_CFHW.to(self._device)
        s = self.spec.shape
        return self._noise(row.noise, (s.channels, row.frames, s.rows, s.columns))

    def _moved(self, row: DenoiseRow, x: Tensor, velocity: Tensor) -> Tensor:
        """To the next noise level; fresh noise belongs to the step that follows."""
        if row.move is Move.STAY:
            return velocity
        seed, branch, chunk, step = row.noise
        key = None if row.move is Move.EULER else NoiseKey(seed, branch, chunk, step + 1)
        return sampler_step(x[None], velocity[None], [SamplerMove(row.sigma, row.next_sigma, key)])[0]

    def _noise(self, key: NoiseKey, shape: tuple[int, ...]) -> Tensor:
        return gaussian([key], shape, self._device)[0]

    # ---- commit ----

    def _commit(self, rows: Sequence[CommitRow], views: Sequence[CacheView | None]) -> list[Committed]:
        """All rows in one pass, each into its own staged entry."""
        held = [needed(view) for view in views]
        jobs = [
            Job(row.x_CFHW, 0.0, row.prompt, row.first_frame, self._passes.sees(view, row.rebuilt, 0))
            for row, view in zip(rows, held, strict=True)
        ]
        self._passes.commit(jobs, [(view.slot, view.staged) for view in held])
        return [Committed() for _ in rows]

    # ---- pictures ----

    def _decode(self, row: DecodeRow) -> Decoded:
        x, features = row.x_CFHW[None].to(self._device), tuple(f.to(self._device) for f in row.features)
        decoder = self.networks.vae if self.networks.tiny is None else self.networks.tiny
        picture, after = decoder.decode(x, features)
        frames = frames_of(picture[0].transpose(0, 1), self._frame)
        latents = Latents.of(row.x_CFHW.float().cpu().numpy())
        edge = picture[0, :, -row.edge].float().clamp(-1, 1).contiguous() if row.edge else None
        return Decoded(frames, after, latents, edge)
