"""A Waypoint card's steps on one device. A denoise pass reads the slab, a commit pass writes its frame too.

Rows run one after another, so a row's bits never depend on its neighbours.
"""

import hashlib
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
from ..contract.cache import CacheView
from ..contract.card import FrameSpec
from ..contract.loop import StepKind
from ..shared.slab_bytes import from_bytes, to_bytes
from ..shared.steps import misplaced, needed, paired
from ..shared.video.pictures import frames_of
from .card import BUTTONS, WaypointSpec
from .loop import Committed, Decoded, DecodeRow, Denoised, PassRow, WaypointResult, WaypointRow
from .slab import Slab, Window
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


@dataclass(frozen=True, slots=True)
class WaypointNetworks:
    transformer: WaypointTransformer
    decoder: PatchDecoder


class WaypointRuntime:
    """See the module docstring. `frame`: what its decode hands on."""

    def __init__(self, spec: WaypointSpec, networks: WaypointNetworks, frame: FrameSpec) -> None:
        self._spec, self._networks, self._frame = spec, networks, frame
        self._modulations = lru_cache(maxsize=8)(networks.transformer.modulations)  # a recipe has five noise levels
        self._dtype, self._device = networks.transformer.read.weight.dtype, networks.transformer.read.weight.device
        self.allocate(0)

    def allocate(self, slots: int) -> None:
        self._slab = Slab(self._spec, slots, self._dtype, self._device)

    @torch.inference_mode()
    def execute(
        self, kind: StepKind, rows: Sequence[WaypointRow], views: Sequence[CacheView | None]
    ) -> list[WaypointResult]:
        return [self._one(kind, row, view) for row, view in paired(rows, views)]

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

    def read_entry(self, slot: int, entry: int) -> bytes:
        return to_bytes(self._slab.near[slot, entry])

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        from_bytes(data, self._slab.near[slot, entry])

    def read_extra(self, slot: int) -> bytes:
        """What the global layers keep. A frame written since is not among those that the next one reads."""
        return to_bytes(self._slab.far[slot])

    def write_extra(self, slot: int, data: bytes) -> None:
        from_bytes(data, self._slab.far[slot])

    def _one(self, kind: StepKind, row: WaypointRow, view: CacheView | None) -> WaypointResult:
        match row:
            case PassRow() if kind is StepKind.DENOISE:
                return Denoised(self._denoise(row, needed(view)))
            case PassRow(x_TC=Tensor() as x) if kind is StepKind.COMMIT:
                self._pass(row, x, Window(self._slab, needed(view), row.frame, True))
                return Committed()
            case DecodeRow() if kind is StepKind.DECODE:
                picture = self._networks.decoder(row.x_TC.to(self._device, self._dtype))
                frame = frames_of(picture.permute(2, 0, 1)[None], self._frame)[0]
                return Decoded(frame, hashlib.sha256(row.x_TC.cpu().numpy().astype("<f4").tobytes()).hexdigest())
            case PassRow() | DecodeRow():
                raise misplaced(kind, row)
            case _:
                assert_never(row)

    def _denoise(self, row: PassRow, view: CacheView) -> Tensor:
        s = self._spec
        x = gaussian([row.noise], (s.tokens, s.channels), self._device)[0] if row.x_TC is None else row.x_TC
        velocity = self._pass(row, x, Window(self._slab, view, row.frame, False))
        return sampler_step(x[None], velocity[None], [SamplerMove(row.sigma, row.next_sigma, None)])[0]

    def _pass(self, row: PassRow, x_TC: Tensor, window: Window) -> Tensor:
        control = torch.from_numpy(row.control_C).to(self._device, self._dtype)
        steering = Steering(control, row.prompt_PW)
        x = x_TC.to(self._device, self._dtype)
        velocity: Tensor = self._networks.transformer(x, self._modulations(row.sigma), row.frame, steering, window)
        return velocity
