"""A Wan card's weights on one device: rows and cache views to results.

A denoise step reads entries and writes none; commit and recache write `staged` and `spare` alone, so committed
entries keep every bit until they fall out. Keys are kept rotated by their frame (absolute) or plain and rotated by
their place when read (window). With `exact` rows run one at a time and are bit-equal to solo runs.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

import numpy as np
import torch
from torch import Tensor

from ...kernels.noise import gaussian
from ...kernels.philox import NoiseKey
from ...kernels.sampler_step import Step, sampler_step
from ..contract.cache import CacheView
from ..contract.loop import StepKind
from ..shared.compiled import CompileCache, Run, eager
from ..shared.video.rope import Rotation, rotate, rotation
from ..shared.video.vae import WanVae
from .guidance import guided, stands_still
from .prompts import PromptKeys
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
    WanResult,
    WanRow,
    Written,
)
from .slab import RebuiltPast, Slab, SlabPast
from .spec import Positions, Rollout, WanSpec
from .text import TextEncoder
from .tiny_decoder import TinyDecoder
from .transformer import KV, NoPast, Past, WanTransformer

_KINDS = {
    DenoiseRow: StepKind.DENOISE,
    CommitRow: StepKind.COMMIT,
    RecacheRow: StepKind.RECACHE,
    DecodeRow: StepKind.DECODE,
    EncodeRow: StepKind.ENCODE,
}


@dataclass(frozen=True, slots=True)
class WanNetworks:
    """What a card loads. `tiny` decodes instead of the autoencoder when it is there."""

    transformer: WanTransformer
    vae: WanVae
    text: TextEncoder
    tiny: TinyDecoder | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """One row of one transformer pass."""

    x_CFHW: Tensor
    timestep: float
    prompt: Prompt
    first_frame: int
    past: tuple[int, tuple[int, ...]]  # slot and ring entries it sees, oldest first


class WanRuntime:
    """See the module docstring."""

    def __init__(
        self,
        spec: WanSpec,
        networks: WanNetworks,
        dtype: torch.dtype,
        exact: bool,
        narrow_kv: bool = False,
        compiled: CompileCache | None = None,
    ) -> None:
        self.spec, self.networks, self.exact = spec, networks, exact
        self._dtype, self._narrow_kv, self._compiled = dtype, narrow_kv, compiled
        self._device = next(networks.transformer.parameters()).device
        self.slab = Slab((0,), dtype, self._device, narrow_kv)
        self._prompt_keys = PromptKeys(networks.transformer, self._device)
        self._negative = Prompt("negative", ((networks.text.encode(""), 1.0),))
        self._rotation = lru_cache(maxsize=64)(self._rotated)

    def allocate(self, slots: int) -> None:
        if isinstance(self.spec.plan, Rollout):
            s, plan = self.spec.shape, self.spec.plan
            tokens = max(plan.chunk, plan.context) * s.tokens
            sizes = (slots, plan.past_chunks + 1 + plan.rebuild, s.layers, 2, tokens, s.heads, s.head_width)
            self.slab = Slab(sizes, self._dtype, self._device, self._narrow_kv)

    @torch.no_grad()
    def execute(self, kind: StepKind, rows: Sequence[WanRow], views: Sequence[CacheView | None]) -> list[WanResult]:
        if len(rows) != len(views):
            raise ValueError(f"{len(rows)} rows but {len(views)} cache views")
        for row in rows:
            if _KINDS[type(row)] is not kind:
                raise ValueError(f"a {type(row).__name__} cannot run in a '{kind}' step")
        if kind is StepKind.DENOISE and not self.exact:
            return list(self._denoise([row for row in rows if isinstance(row, DenoiseRow)], views))
        return [self._one(row, view) for row, view in zip(rows, views, strict=True)]

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
            case StepKind.ENCODE:
                row = EncodeRow(torch.zeros(3, 1, self.spec.height, self.spec.width))
            case _:
                raise ValueError(f"Wan has no step '{kind}'")
        return [(row, self._full_view(slot)) for slot in range(count)]

    def read_entry(self, slot: int, entry: int) -> bytes:
        """Keys and values of one chunk, all layers, as they lie in the slab."""
        return self.slab.read_entry(slot, entry)

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        self.slab.write_entry(slot, entry, data)

    def _rotated(self, first: int, frames: int) -> Rotation:
        s = self.spec.shape
        return rotation(s.head_width, s.rows // 2, s.columns // 2, first, frames, self._device)

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
                held = _needed(view)
                sees = self._sees(held, row.rebuilt, 0)
                job = _Job(row.x_CFHW, 0.0, row.prompt, row.first_frame, sees)
                self.slab.write(held.slot, held.staged, self._keys(job, self._slab_past([job]), StepKind.COMMIT))
                return Written()
            case RecacheRow():
                return self._recache(row, _needed(view))
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
        jobs: list[_Job] = []
        for row, x, view in zip(rows, xs, views, strict=True):
            sees = (0, ()) if view is None else self._sees(view, row.rebuilt, row.context)
            parts = [row.prompt] if row.guide is None or row.guide.part == "whole" else []
            if row.guide is not None and row.guide.negative_CFHW is None:
                parts.append(self._negative)
            jobs += [_Job(x, row.told, prompt, row.first_frame, sees) for prompt in parts]
        velocities = iter(self._velocities(jobs))
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

    def _velocities(self, jobs: Sequence[_Job]) -> list[Tensor]:
        frames = jobs[0].x_CFHW.shape[1]
        done = self.networks.transformer(
            torch.stack([job.x_CFHW for job in jobs]),
            torch.tensor([[job.timestep] * frames for job in jobs], device=self._device),
            [self._prompt_keys.of(job.prompt) for job in jobs],
            [self._own(job, frames) for job in jobs],
            self._slab_past(jobs),
            run=self._run(StepKind.DENOISE),
        )
        return list(done.flow_BCFHW)

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
        return sampler_step(x[None], velocity[None], [Step(row.sigma, row.next_sigma, key)])[0]

    def _noise(self, key: NoiseKey, shape: tuple[int, ...]) -> Tensor:
        return gaussian([key], shape, self._device)[0]

    # ---- the slab ----

    def _sees(self, view: CacheView, rebuilt: int, context: int) -> tuple[int, tuple[int, ...]]:
        if context:
            return view.slot, (view.staged,)
        if rebuilt:
            sink = self.spec.rollout.sink_chunks
            return view.slot, (*view.committed[:sink], *view.spare[:rebuilt])
        return view.slot, view.committed

    def _slab_past(self, jobs: Sequence[_Job]) -> Past:
        return SlabPast(self.slab, [job.past for job in jobs], self._window_rotation)

    def _window_rotation(self, entries: int) -> Rotation | None:
        """Of keys that are kept plain: by their place in the window."""
        plan = self.spec.plan
        if isinstance(plan, Rollout) and plan.positions is Positions.WINDOW:
            made: Rotation = self._rotation(0, entries * max(plan.chunk, plan.context))
            return made
        return None

    def _own(self, job: _Job, frames: int) -> Rotation:
        """Of a row's own tokens: by absolute frame, or after the window's past."""
        plan, first = self.spec.plan, job.first_frame
        if isinstance(plan, Rollout) and plan.positions is Positions.WINDOW:
            first = len(job.past[1]) * max(plan.chunk, plan.context)
        made: Rotation = self._rotation(first, frames)
        return made

    def _run(self, kind: StepKind) -> Run:
        return eager if self._compiled is None else self._compiled.of(kind)

    def _keys(self, job: _Job, past: Past, kind: StepKind) -> list[KV]:
        """Fresh keys (as they are kept) and values of clean latents, per layer."""
        frames = job.x_CFHW.shape[1]
        own = self._own(job, frames)
        done = self.networks.transformer(
            job.x_CFHW[None].to(self._device),
            torch.full((1, frames), job.timestep, device=self._device),
            [self._prompt_keys.of(job.prompt)],
            [own],
            past,
            keep=True,
            run=self._run(kind),
        )
        plan = self.spec.rollout
        if plan.positions is Positions.WINDOW:
            return [rows[0] for rows in done.fresh]
        return [KV(rotate(rows[0].k_TND, own), rows[0].v_TND) for rows in done.fresh]

    def _recache(self, row: RecacheRow, view: CacheView) -> Written:
        """Chunk by chunk; what has been rebuilt so far is held aside, the last `keep` chunks are written."""
        plan = self.spec.rollout
        if row.keep == 0:
            job = _Job(row.x_CFHW, 0.0, row.prompt, row.first_frame, (view.slot, ()))
            self.slab.write(view.slot, view.staged, self._keys(job, NoPast(), StepKind.RECACHE))
            return Written()
        sink = view.committed[: plan.sink_chunks]
        held: list[list[KV]] = []
        for at, part in enumerate(torch.split(row.x_CFHW, plan.chunk, 1)):
            before = held[-(plan.past_chunks - plan.sink_chunks) :]
            window = (*sink, *range(len(before)))
            job = _Job(part, 0.0, row.prompt, row.first_frame + at * plan.chunk, (view.slot, window))
            past = RebuiltPast(self.slab, view.slot, sink, before, self._window_rotation)
            held.append(self._keys(job, past, StepKind.RECACHE))
        for entry, fresh in zip(view.spare, held[-row.keep :], strict=False):
            self.slab.write(view.slot, entry, fresh)
        return Written()

    # ---- pictures ----

    def _decode(self, row: DecodeRow) -> Decoded:
        x, features = row.x_CFHW[None].to(self._device), tuple(f.to(self._device) for f in row.features)
        decoder = self.networks.vae if self.networks.tiny is None else self.networks.tiny
        picture, after = decoder.decode(x, features)
        levels = ((picture[0].float().clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
        frames = levels.permute(1, 2, 3, 0).contiguous().cpu().numpy()
        digest = hashlib.sha256(np.ascontiguousarray(row.x_CFHW.float().cpu().numpy()).tobytes()).hexdigest()
        edge = picture[0, :, -row.edge].float().clamp(-1, 1).contiguous() if row.edge else None
        return Decoded(frames, after, digest, edge)


def _needed(view: CacheView | None) -> CacheView:
    if view is None:
        raise ValueError("this step writes the cache and was given no view")
    return view
