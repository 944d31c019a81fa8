"""A Waypoint card's steps on one device: local layers in the engine's ring, global layers in a ring of their own.

    near   [slots, local + 1, local layers, 2, T, G, D]               entries as the view says
    far    [slots, span / dilation + 1, global layers, 2, T, G, D]    frame f stands at (f / dilation) mod its length

The place a new frame takes in `far` is never among those the frame may read, and which ones it may read follows from
its number alone: a cancelled chunk leaves nothing behind. Rows run one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import torch
from torch import Tensor, nn

from ...kernels.noise import gaussian
from ...kernels.philox import NoiseKey
from ..contract.cache import CacheView
from ..contract.card import FrameSpec
from ..contract.loop import StepKind
from ..shared.slab_bytes import from_bytes, to_bytes
from ..shared.video.pictures import frames_of
from .card import BUTTONS, WaypointSpec
from .loop import Committed, Decoded, DecodeRow, Denoised, PassRow, WaypointResult, WaypointRow
from .transformer import KV, Steering, WaypointTransformer


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
        self._dtype, self._device = networks.transformer.read.weight.dtype, networks.transformer.read.weight.device
        self.allocate(0)

    def allocate(self, slots: int) -> None:
        s = self._spec
        far = len(s.global_layers)
        frame = (2, s.tokens, s.kv_heads, s.head_width)
        self._near = torch.zeros(slots, s.local + 1, s.layers - far, *frame, dtype=self._dtype, device=self._device)
        self._far = torch.zeros(slots, s.distant + 1, far, *frame, dtype=self._dtype, device=self._device)

    @torch.inference_mode()
    def execute(
        self, kind: StepKind, rows: Sequence[WaypointRow], views: Sequence[CacheView | None]
    ) -> list[WaypointResult]:
        if len(rows) != len(views):
            raise ValueError(f"{len(rows)} rows but {len(views)} cache views")
        return [self._one(kind, row, view) for row, view in zip(rows, views, strict=True)]

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
        x = np.zeros((s.tokens, s.channels), np.float32)
        row: WaypointRow
        match kind:
            case StepKind.DENOISE | StepKind.COMMIT:
                sigma = 1.0 if kind is StepKind.DENOISE else 0.0
                row = PassRow(x, sigma, s.span, np.zeros(BUTTONS + 3, np.float32), self.encode_prompt(""))
            case StepKind.DECODE:
                row = DecodeRow(x)
            case _:
                raise ValueError(f"Waypoint has no step '{kind}'")
        return [(row, CacheView(slot, tuple(range(s.local)), s.local)) for slot in range(count)]

    def read_entry(self, slot: int, entry: int) -> bytes:
        return to_bytes(self._near[slot, entry])

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        from_bytes(data, self._near[slot, entry])

    def read_beside(self, slot: int) -> bytes:
        """What the global layers keep. A frame written since is not among those that the next one reads."""
        return to_bytes(self._far[slot])

    def write_beside(self, slot: int, data: bytes) -> None:
        from_bytes(data, self._far[slot])

    def _one(self, kind: StepKind, row: WaypointRow, view: CacheView | None) -> WaypointResult:
        match row:
            case PassRow() if kind is StepKind.DENOISE and view is not None:
                velocity, _ = self._pass(row, view)
                return Denoised(velocity.cpu().numpy())
            case PassRow() if kind is StepKind.COMMIT and view is not None:
                self._write(row.frame, view, self._pass(row, view)[1])
                return Committed()
            case DecodeRow() if kind is StepKind.DECODE:
                picture = self._networks.decoder(torch.from_numpy(row.x_TC).to(self._device, self._dtype))
                return Decoded(frames_of(picture.permute(2, 0, 1)[None], self._frame)[0])
            case PassRow() | DecodeRow():
                raise ValueError(f"a {type(row).__name__} cannot run in a '{kind}' step, or was given no cache view")
            case _:
                assert_never(row)

    def _pass(self, row: PassRow, view: CacheView) -> tuple[Tensor, list[KV]]:
        x, control = (torch.from_numpy(a).to(self._device, self._dtype) for a in (row.x_TC, row.control_C))
        velocity, fresh = self._networks.transformer(
            x, row.sigma, row.frame, Steering(control, row.prompt_PW), self._past(row.frame, view)
        )
        return velocity, fresh

    def _past(self, frame: int, view: CacheView) -> list[KV | None]:
        """What each layer sees, oldest first."""
        s = self._spec
        newest = -(-frame // s.dilation)  # kept frames before this one
        far = [kept % (s.distant + 1) for kept in range(max(0, newest - s.distant), newest)]
        near, past = 0, []
        for layer in range(s.layers):
            if s.is_global(layer):
                seen = self._far[view.slot, far, s.global_layers.index(layer)]
            else:
                seen = self._near[view.slot, list(view.committed), near]
                near += 1
            k, v = seen.transpose(0, 1).flatten(1, 2)
            past.append((k, v) if len(k) else None)
        return past

    def _write(self, frame: int, view: CacheView, fresh: Sequence[KV]) -> None:
        s, near = self._spec, 0
        for layer, kv in enumerate(fresh):
            if not s.is_global(layer):
                self._near[view.slot, view.staged, near] = torch.stack(kv)
                near += 1
            elif frame % s.dilation == 0:
                place = frame // s.dilation % (s.distant + 1)
                self._far[view.slot, place, s.global_layers.index(layer)] = torch.stack(kv)
