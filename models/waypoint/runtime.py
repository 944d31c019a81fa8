"""A Waypoint card's steps on one device. A denoise pass reads the slab, a commit pass writes its frame too.

In the invariant form rows share a pass, and each keeps the bits it has alone; otherwise they run one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

import numpy as np
import torch
from torch import Tensor, nn

from ...kernels.noise import gaussian
from ...kernels.philox import NoiseKey
from ...kernels.sampler_step import SamplerMove, sampler_step
from ...kernels.upload import upload
from ..contract.cache import CacheView
from ..contract.card import FrameSpec
from ..contract.latents import Latents
from ..contract.loaded import Copied
from ..contract.loop import Committed, StepKind
from ..shared.adapters import Adapters, Stack
from ..shared.lora_file import same_names
from ..shared.slab_bytes import clear, from_bytes, to_bytes
from ..shared.steps import misplaced, needed, paired
from ..shared.video.pictures import frames_of
from .loop import Decoded, DecodeRow, Denoised, PassRow, WaypointResult, WaypointRow
from .slab import Slab, Window
from .spec import BUTTONS, WaypointSpec
from .transformer import Steering, WaypointTransformer


class PatchDecoder(nn.Module):
    """Stands where the published autoencoder would: each token's latent becomes its patch of the picture."""

    def __init__(self, spec: WaypointSpec) -> None:
        super().__init__()
        self.spec = spec
        self.patch = nn.Linear(spec.channels, 3 * spec.patch**2)

    def forward(self, x_TC: Tensor) -> Tensor:
        s = self.spec
        y = torch.tanh(self.patch(x_TC)).view(s.rows, s.columns, s.patch, s.patch, 3).permute(0, 2, 1, 3, 4)
        return y.reshape(s.rows * s.patch, s.columns * s.patch, 3)


MODULATIONS_KEPT = 5 * 8
"""A recipe has five noise levels; at each, every stack of adapters makes its own: .7 MB at published sizes."""


@dataclass(frozen=True, slots=True)
class WaypointNetworks:
    transformer: WaypointTransformer
    decoder: PatchDecoder


class WaypointRuntime:
    """See the module docstring. `frame`: what its decode hands on."""

    def __init__(
        self, spec: WaypointSpec, networks: WaypointNetworks, frame: FrameSpec, invariant: bool = False
    ) -> None:
        self._spec, self._networks, self._frame, self._shares = spec, networks, frame, invariant
        self._dtype, self._device = networks.transformer.read.weight.dtype, networks.transformer.read.weight.device
        self.adapters = Adapters(networks.transformer.layers, "layers.", same_names, self._dtype, invariant)
        self._modulations = lru_cache(maxsize=MODULATIONS_KEPT)(self._modulated)
        self.allocate(0)

    def allocate(self, slots: int) -> None:
        self._slab = Slab(self._spec, slots, self._dtype, self._device)

    def reserve(self, slots: int) -> None:
        self._slab = Slab(self._spec, slots, self._dtype, self._device, torch.empty)

    def clear_entry(self, slot: int, entry: int) -> None:
        """Of the global layers, every frame whose turn comes with this entry."""
        near, far = self._slab.near, self._slab.far
        clear(near[slot, entry], far[slot, entry :: near.shape[1]])

    @torch.inference_mode()
    def execute(
        self, kind: StepKind, rows: Sequence[WaypointRow], views: Sequence[CacheView | None]
    ) -> list[WaypointResult]:
        pairs = paired(rows, views)
        if not self._shares:
            return [self._one(kind, row, view) for row, view in pairs]
        results: dict[int, WaypointResult] = {}
        for together in self._groups(kind, pairs):
            results |= zip(together, self._together(kind, [pairs[at] for at in together]), strict=True)
        return [results[at] for at in range(len(pairs))]

    def _groups(self, kind: StepKind, pairs: Sequence[tuple[WaypointRow, CacheView | None]]) -> list[list[int]]:
        """Rows that share a pass: all that denoise, and of those that commit all that stay in the global layers."""
        groups: dict[bool, list[int]] = {}
        for at, (row, _) in enumerate(pairs):
            stays = kind is StepKind.COMMIT and isinstance(row, PassRow) and self._spec.stays(row.frame)
            groups.setdefault(stays, []).append(at)
        return [*groups.values()]

    def _together(
        self, kind: StepKind, pairs: Sequence[tuple[WaypointRow, CacheView | None]]
    ) -> Sequence[WaypointResult]:
        passes = [(row, needed(view)) for row, view in pairs if isinstance(row, PassRow)]
        if len(passes) < len(pairs) or kind not in (StepKind.DENOISE, StepKind.COMMIT):
            return [self._one(kind, row, view) for row, view in pairs]
        rows, views = [row for row, _ in passes], [view for _, view in passes]
        return self._denoise(rows, views) if kind is StepKind.DENOISE else self._commit(rows, views)

    def encode_prompt(self, text: str) -> Tensor:
        """Every word a drawn vector: umt5-xl belongs to published weights, which cannot be loaded yet."""
        s = self._spec
        words = (text.split() or [""])[: s.prompt_length]
        seeds = [int.from_bytes(word.encode("utf-8", "replace")[:8], "little") for word in words]
        keys = [NoiseKey(seed, place, 0, 0) for place, seed in enumerate(seeds)]
        out = torch.zeros(s.prompt_length, s.prompt_width, dtype=self._dtype, device=self._device)
        out[: len(keys)] = gaussian(keys, (s.prompt_width,), self._device)
        return out

    @torch.inference_mode()
    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[WaypointRow, CacheView | None]]:
        s = self._spec
        x = torch.zeros(s.tokens, s.channels, device=self._device)
        row: WaypointRow
        match kind:
            case StepKind.DENOISE | StepKind.COMMIT:
                sigma = 1.0 if kind is StepKind.DENOISE else 0.0
                control = np.zeros(BUTTONS + 3, np.float32)
                row = PassRow(x, sigma, 0.5 * sigma, NoiseKey(0, 0, 0, 0), s.span, control, self.encode_prompt(""))
            case StepKind.DECODE:
                row = DecodeRow(x)
            case _:
                raise ValueError(f"Waypoint has no step '{kind}'")
        return [(row, CacheView(slot, tuple(range(s.local)), s.local)) for slot in range(count)]

    def read_entry(self, slot: int, entry: int) -> Copied:
        return to_bytes(self._slab.near[slot, entry])

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        from_bytes(data, self._slab.near[slot, entry])

    def read_extra(self, slot: int) -> tuple[Copied, ...]:
        """What the global layers keep, frame by frame. One written since is not among those that the next one reads."""
        return tuple(to_bytes(frame) for frame in self._slab.far[slot])

    def write_extra(self, slot: int, data: tuple[bytes, ...]) -> None:
        for one, frame in zip(data, self._slab.far[slot], strict=True):
            from_bytes(one, frame)

    def _one(self, kind: StepKind, row: WaypointRow, view: CacheView | None) -> WaypointResult:
        match row:
            case PassRow() if kind is StepKind.DENOISE:
                return self._denoise([row], [needed(view)])[0]
            case PassRow() if kind is StepKind.COMMIT:
                return self._commit([row], [needed(view)])[0]
            case DecodeRow() if kind is StepKind.DECODE:
                picture = self._networks.decoder(row.x_TC.to(self._device, self._dtype))
                frame = frames_of(picture.permute(2, 0, 1)[None], self._frame)[0]
                return Decoded(frame, Latents.of(row.x_TC.cpu().numpy()))
            case PassRow() | DecodeRow():
                raise misplaced(kind, row)
            case _:
                assert_never(row)

    def _denoise(self, rows: Sequence[PassRow], views: Sequence[CacheView]) -> list[Denoised]:
        s = self._spec
        xs = [
            gaussian([row.noise], (s.tokens, s.channels), self._device)[0] if row.x_TC is None else row.x_TC
            for row in rows
        ]
        velocity_BTC = self._pass(rows, xs, Window(self._slab, views, [row.frame for row in rows], False))
        moves = [SamplerMove(row.sigma, row.next_sigma, None) for row in rows]
        return [
            Denoised(sampler_step(x[None], velocity[None], [move])[0])
            for x, velocity, move in zip(xs, velocity_BTC, moves, strict=True)
        ]

    def _commit(self, rows: Sequence[PassRow], views: Sequence[CacheView]) -> list[Committed]:
        xs = [needed(row.x_TC, "a clean frame") for row in rows]
        self._pass(rows, xs, Window(self._slab, views, [row.frame for row in rows], True))
        return [Committed() for _ in rows]

    def _pass(self, rows: Sequence[PassRow], xs: Sequence[Tensor], window: Window) -> Tensor:
        """Velocity [B, T, C] of one pass of all rows."""
        controls = [torch.from_numpy(row.control_C) for row in rows]
        steering = Steering(
            upload(torch.stack(controls), self._device).to(self._dtype), torch.stack([row.prompt_PW for row in rows])
        )
        modulations = [self._modulations(row.sigma, row.adapters) for row in rows]
        with self.adapters.rows([row.adapters for row in rows]):
            velocity: Tensor = self._networks.transformer(
                torch.stack([x.to(self._device, self._dtype) for x in xs]),
                modulations,
                [row.frame for row in rows],
                steering,
                window,
            )
        return velocity

    def _modulated(self, sigma: float, stack: Stack) -> list[Tensor]:
        """Of every layer at one noise level, with what the stack adds to them [1, 1, 6 M]."""
        with self.adapters.rows([stack]):
            return self._networks.transformer.modulations(sigma)
