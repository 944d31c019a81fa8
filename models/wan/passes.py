"""Passes of the Wan transformer over rows of several sessions: what each sees, and velocities or written entries.

Keys are kept rotated by their frame (absolute) or plain and rotated by their place when read (window). Entries of 8-bit
integers are written after a pass, all others by the pass itself, layer by layer. Knows neither steps nor samplers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from ...kernels.upload import upload
from ..contract.cache import CacheView
from ..contract.loop import StepKind
from ..shared.adapters import Adapters
from ..shared.captured import CapturedPasses
from ..shared.compiled import CompileCache, CompiledRun, eager
from ..shared.slab_bytes import Make
from ..shared.video.block_names import other_names
from ..shared.video.rope import Rotation, rotation
from .prompts import PromptKeys
from .rows import Prompt, RecacheRow
from .slab import RebuiltPast, Slab, SlabPast, Writes
from .spec import Positions, Rollout, WanSpec
from .transformer import KV, NoPast, Past, WanTransformer


@dataclass(frozen=True, slots=True)
class Job:
    """One row of one pass. `past`: slot and ring entries it sees, oldest first."""

    x_CFHW: Tensor
    timestep: float
    prompt: Prompt
    first_frame: int
    past: tuple[int, tuple[int, ...]]


class Passes:
    """The network and the slab of one card."""

    def __init__(
        self,
        spec: WanSpec,
        transformer: WanTransformer,
        dtype: torch.dtype,
        narrow_kv: bool,
        compiled: CompileCache | None,
        each_row: bool,
        captured: CapturedPasses | None = None,
    ) -> None:
        """`each_row`: no row's bits depend on what shares its pass. `captured`: whole passes that write nothing."""
        self.spec, self._transformer = spec, transformer
        self.device = next(transformer.parameters()).device
        self._dtype, self._narrow_kv, self._compiled, self._captured = dtype, narrow_kv, compiled, captured
        self.slab = Slab((0,), dtype, self.device, narrow_kv)
        self.adapters = Adapters(transformer.blocks, "blocks.", other_names, dtype, each_row)
        self._prompt_keys = PromptKeys(transformer, self.device, self.adapters)
        self._rotation = lru_cache(maxsize=64)(self._rotated)

    def allocate(self, slots: int, make: Make = torch.zeros) -> None:
        if isinstance(self.spec.plan, Rollout):
            s, plan = self.spec.shape, self.spec.plan
            tokens = max(plan.chunk, plan.context) * s.tokens
            sizes = (slots, plan.past_chunks + 1 + plan.rebuild, s.layers, 2, tokens, s.heads, s.head_width)
            self.slab = Slab(sizes, self._dtype, self.device, self._narrow_kv, make)

    def sees(self, view: CacheView | None, rebuilt: int, context: int) -> tuple[int, tuple[int, ...]]:
        """Slot and entries of a row that reads the sink and so many rebuilt chunks, its context, or all committed."""
        if view is None:
            return 0, ()
        if context:
            return view.slot, (view.staged,)
        if rebuilt:
            sink = self.spec.rollout.sink_chunks
            return view.slot, (*view.committed[:sink], *view.spare[:rebuilt])
        return view.slot, view.committed

    def velocities(self, jobs: Sequence[Job]) -> list[Tensor]:
        """[C, F, H, W] of each, from one pass."""
        if self._captured is not None and not any(job.prompt.adapters for job in jobs):
            return list(self._replayed(jobs, self._captured))
        made = self._run(jobs, self._past(jobs), StepKind.DENOISE, None)
        if made is None:
            raise ValueError("a pass that writes nothing makes velocities")
        return list(made)

    def commit(self, jobs: Sequence[Job], to: Sequence[tuple[int, int]]) -> None:
        """Keys and values of clean latents into slot and entry of each."""
        if self._narrow_kv:  # one by one: all layers of a row are held until its pass is over
            for job, (slot, entry) in zip(jobs, to, strict=True):
                self.slab.write(slot, entry, self._kept(job, self._past([job]), StepKind.COMMIT))
        else:
            self._run(jobs, self._past(jobs), StepKind.COMMIT, self.slab.writes(to, self._plain))

    def recache(self, row: RecacheRow, view: CacheView) -> None:
        """Chunk by chunk; what has been rebuilt so far is held aside, the last `keep` chunks are written."""
        plan = self.spec.rollout
        if row.keep == 0:
            job = Job(row.x_CFHW, 0.0, row.prompt, row.first_frame, (view.slot, ()))
            self.slab.write(view.slot, view.staged, self._kept(job, NoPast(), StepKind.RECACHE))
            return
        sink = view.committed[: plan.sink_chunks]
        held: list[Tensor] = []
        for at, part in enumerate(torch.split(row.x_CFHW, plan.chunk, 1)):
            before = held[-(plan.past_chunks - plan.sink_chunks) :]
            window = (*sink, *range(len(before)))
            job = Job(part, 0.0, row.prompt, row.first_frame + at * plan.chunk, (view.slot, window))
            past = RebuiltPast(self.slab, view.slot, sink, before, self._window_rotation)
            held.append(self._kept(job, past, StepKind.RECACHE))
        for entry, fresh in zip(view.spare, held[-row.keep :], strict=False):
            self.slab.write(view.slot, entry, fresh)

    # ---- one pass ----

    def _kept(self, job: Job, past: Past, kind: StepKind) -> Tensor:
        """Keys and values of one row, as they are kept [layers, 2, tokens, heads, head width]."""
        s = self.spec.shape
        sizes = (1, s.layers, 2, job.x_CFHW.shape[1] * s.tokens, s.heads, s.head_width)
        held = torch.empty(sizes, dtype=self._dtype, device=self.device)
        only = torch.zeros(1, dtype=torch.int32, device=self.device)
        self._run([job], past, kind, Writes(held, only, self._plain))
        return held[0]

    def _run(self, jobs: Sequence[Job], past: Past, kind: StepKind, keep: Writes | None) -> Tensor | None:
        x_BCFHW, timestep_BF, turn_BTJ = self._inputs(jobs)
        prompts = [self._prompt_keys.of(job.prompt) for job in jobs]
        with self.adapters.rows([job.prompt.adapters for job in jobs]) as adapted:
            run: CompiledRun = eager if adapted or self._compiled is None else self._compiled.of(kind)
            made: Tensor | None = self._transformer(x_BCFHW, timestep_BF, prompts, turn_BTJ, past, keep=keep, run=run)
        return made

    def _replayed(self, jobs: Sequence[Job], captured: CapturedPasses) -> Tensor:
        """The same pass as a function of tensors that all have the rows in front."""
        x_BCFHW, timestep_BF, turn_BTJ = self._inputs(jobs)
        prompts = [self._prompt_keys.of(job.prompt) for job in jobs]
        text = torch.stack([torch.stack([torch.stack((kv.k_LND, kv.v_LND)) for kv in row]) for row in prompts])
        run: CompiledRun = eager if self._compiled is None else self._compiled.of(StepKind.DENOISE)

        def velocities(x: Tensor, t: Tensor, cos: Tensor, sin: Tensor, text: Tensor, at: Tensor, of: Tensor) -> Tensor:
            keys = [[KV(layer[0], layer[1]) for layer in row] for row in text]
            past = SlabPast(self.slab, (at, of), self._window_rotation)
            made: Tensor = self._transformer(x, t, keys, (cos, sin), past, run=run)
            return made

        arguments = (x_BCFHW, timestep_BF, *turn_BTJ, text, *self._past(jobs).tables)
        return captured.run(StepKind.DENOISE, velocities, arguments)

    def _inputs(self, jobs: Sequence[Job]) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        frames = jobs[0].x_CFHW.shape[1]
        turns = [self._own(job, frames) for job in jobs]
        return (
            torch.stack([job.x_CFHW.to(self.device) for job in jobs]),
            upload(torch.tensor([[job.timestep] * frames for job in jobs]), self.device),
            (torch.stack([t.cos_T1P[:, 0] for t in turns]), torch.stack([t.sin_T1P[:, 0] for t in turns])),
        )

    def _past(self, jobs: Sequence[Job]) -> SlabPast:
        return SlabPast.of(self.slab, [job.past for job in jobs], self._window_rotation)

    # ---- positions ----

    @property
    def _plain(self) -> bool:
        """Keys are kept without their rotation."""
        plan = self.spec.plan
        return isinstance(plan, Rollout) and plan.positions is Positions.WINDOW

    def _window_rotation(self, entries: int) -> Rotation | None:
        """Of keys that are kept plain: by their place in the window."""
        if not self._plain:
            return None
        plan = self.spec.rollout
        made: Rotation = self._rotation(0, entries * max(plan.chunk, plan.context))
        return made

    def _own(self, job: Job, frames: int) -> Rotation:
        """Of a row's own tokens: by absolute frame, or after the window's past."""
        plan, first = self.spec.plan, job.first_frame
        if isinstance(plan, Rollout) and plan.positions is Positions.WINDOW:
            first = len(job.past[1]) * max(plan.chunk, plan.context)
        made: Rotation = self._rotation(first, frames)
        return made

    def _rotated(self, first: int, frames: int) -> Rotation:
        s = self.spec.shape
        return rotation(s.head_width, s.rows // 2, s.columns // 2, first, frames, self.device)
