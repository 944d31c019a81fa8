"""A Matrix-Game card's steps on one device. A denoise pass reads the slab, a commit pass writes the staged entry too.

In the invariant form rows share a pass, and each keeps the bits it has alone; otherwise they run one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import torch
from torch import Tensor

from ...kernels.noise import gaussian
from ...kernels.philox import NoiseKey
from ...kernels.sampler_step import SamplerMove, sampler_step
from ...kernels.upload import upload
from ..contract.cache import CacheView
from ..contract.card import FrameSpec
from ..contract.latents import Latents
from ..contract.loaded import Copied
from ..contract.loop import Committed, StepKind
from ..shared.adapters import Adapters
from ..shared.slab_bytes import clear, from_bytes, to_bytes
from ..shared.steps import misplaced, needed, paired
from ..shared.video.block_names import other_names
from ..shared.video.pictures import frames_of
from ..shared.video.vae import WanVae
from .loop import (
    KEPT,
    Decoded,
    DecodeRow,
    Denoised,
    Encoded,
    EncodeRow,
    MatrixGameResult,
    MatrixGameRow,
    PassRow,
    World,
)
from .slab import Slab, Window
from .spec import MatrixGameSpec
from .transformer import Actions, MatrixGameTransformer
from .vision import ImageEncoder, colours, drawn_opening


@dataclass(frozen=True, slots=True)
class MatrixGameNetworks:
    transformer: MatrixGameTransformer
    vae: WanVae
    image_encoder: ImageEncoder


class MatrixGameRuntime:
    """See the module docstring. `frame`: what its decode hands on."""

    def __init__(
        self, spec: MatrixGameSpec, networks: MatrixGameNetworks, frame: FrameSpec, invariant: bool = False
    ) -> None:
        self._spec, self.networks, self._frame, self._shares = spec, networks, frame, invariant
        weight = networks.transformer.patch_embedding.weight
        self._dtype, self._device = weight.dtype, weight.device
        self.adapters = Adapters(networks.transformer.blocks, "blocks.", other_names, weight.dtype, invariant)
        self.allocate(0)

    def allocate(self, slots: int) -> None:
        self._slab = Slab(self._spec, slots, self._dtype, self._device)

    def reserve(self, slots: int) -> None:
        self._slab = Slab(self._spec, slots, self._dtype, self._device, torch.empty)

    def clear_entry(self, slot: int, entry: int) -> None:
        clear(*self._slab.entry(slot, entry))

    @torch.inference_mode()
    def execute(
        self, kind: StepKind, rows: Sequence[MatrixGameRow], views: Sequence[CacheView | None]
    ) -> list[MatrixGameResult]:
        pairs = paired(rows, views)
        passes = [(row, needed(view)) for row, view in pairs if isinstance(row, PassRow)]
        if not self._shares or len(passes) < len(pairs) or kind not in (StepKind.DENOISE, StepKind.COMMIT):
            return [self._one(kind, row, view) for row, view in pairs]
        together, seen = [row for row, _ in passes], [view for _, view in passes]
        return [*(self._denoise(together, seen) if kind is StepKind.DENOISE else self._commit(together, seen))]

    def encode_prompt(self, text: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        """Matrix-Game reads no text: a prompt chooses the colours of an opening that nobody gave."""
        return colours(text)

    @torch.inference_mode()
    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[MatrixGameRow, CacheView | None]]:
        s = self._spec
        x = torch.zeros(s.channels, s.chunk, s.rows, s.columns, device=self._device)
        row: MatrixGameRow
        match kind:
            case StepKind.ENCODE:
                row = EncodeRow(None, colours(""))
            case StepKind.DENOISE | StepKind.COMMIT:
                sigma = 1.0 if kind is StepKind.DENOISE else 0.0
                condition = torch.zeros(s.channels, s.condition_frames, s.rows, s.columns, device=self._device)
                world = World(condition, torch.zeros(s.image_tokens, s.image_width, device=self._device))
                actions = (np.zeros((KEPT + 12, s.keys), np.float32), np.zeros((KEPT + 12, 2), np.float32))
                row = PassRow(x, sigma, 0.5 * sigma, NoiseKey(0, 0, 1, 0), world, *actions, s.chunk)
            case StepKind.DECODE:
                _, features = self.networks.vae.decode(x[None, :, :1].to(self._dtype), ())
                row = DecodeRow(x, features)
            case _:
                raise ValueError(f"Matrix-Game has no step '{kind}'")
        return [(row, CacheView(slot, (0,), 1)) for slot in range(count)]

    def _one(self, kind: StepKind, row: MatrixGameRow, view: CacheView | None) -> MatrixGameResult:
        match row:
            case EncodeRow() if kind is StepKind.ENCODE:
                return Encoded(self._world(row))
            case PassRow() if kind is StepKind.DENOISE:
                return self._denoise([row], [needed(view)])[0]
            case PassRow() if kind is StepKind.COMMIT:
                return self._commit([row], [needed(view)])[0]
            case DecodeRow() if kind is StepKind.DECODE:
                return self._decode(row)
            case EncodeRow() | PassRow() | DecodeRow():
                raise misplaced(kind, row)
            case _:
                assert_never(row)

    def read_entry(self, slot: int, entry: int) -> Copied:
        """Tokens, mouse and keyboard of one chunk."""
        return to_bytes(*self._slab.entry(slot, entry))

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        from_bytes(data, *self._slab.entry(slot, entry))

    def _world(self, row: EncodeRow) -> World:
        """The picture followed by grey frames, as the weights were trained, and its tokens."""
        picture_HWC = drawn_opening(self._spec, row.palette) if row.opening_HWC is None else row.opening_HWC
        picture = torch.from_numpy(picture_HWC).to(self._device).permute(2, 0, 1).float() / 127.5 - 1
        video = torch.zeros(3, 4 * self._spec.condition_frames - 3, *picture.shape[1:], device=self._device)
        video[:, 0] = picture
        condition = self.networks.vae.encode(video[None])[0]
        return World(condition, self.networks.image_encoder.tokens(picture))

    def _denoise(self, rows: Sequence[PassRow], views: Sequence[CacheView]) -> list[Denoised]:
        xs = [self._noise(row.noise) if row.x_CFHW is None else row.x_CFHW for row in rows]
        flows = self._pass(rows, xs, Window(self._slab, views, False))
        results = []
        for row, x, flow in zip(rows, xs, flows, strict=True):
            seed, branch, chunk, step = row.noise
            move = SamplerMove(row.sigma, row.next_sigma, NoiseKey(seed, branch, chunk, step + 1))
            results.append(Denoised(sampler_step(x[None], flow[None], [move])[0]))
        return results

    def _commit(self, rows: Sequence[PassRow], views: Sequence[CacheView]) -> list[Committed]:
        self._pass(rows, [needed(row.x_CFHW, "a clean chunk") for row in rows], Window(self._slab, views, True))
        return [Committed() for _ in rows]

    def _pass(self, rows: Sequence[PassRow], xs: Sequence[Tensor], window: Window) -> Tensor:
        """Flow [B, C, F, H, W] of one pass of all rows."""
        transformer, mouse = self.networks.transformer, self._spec.mouse
        actions = Actions(
            upload(torch.stack([torch.from_numpy(row.keyboard_AK) for row in rows]), self._device).to(self._dtype),
            upload(torch.stack([torch.from_numpy(row.mouse_A2) for row in rows]), self._device).to(self._dtype)
            if mouse
            else None,
        )
        with self.adapters.rows([row.adapters for row in rows]):
            flow: Tensor = transformer(
                torch.stack([self._stacked(row, x) for row, x in zip(rows, xs, strict=True)]),
                [row.sigma for row in rows],
                transformer.image_kv([row.world.image_IM for row in rows]),
                actions,
                [row.first_frame for row in rows],
                window,
            )
        return flow

    def _stacked(self, row: PassRow, x_CFHW: Tensor) -> Tensor:
        """Latents, the mask of the opening picture, and what is known of it [36, F, H, W]."""
        s = self._spec
        frames = torch.arange(row.first_frame, row.first_frame + s.chunk).clamp(max=s.condition_frames - 1)
        condition = row.world.condition_CKHW[:, upload(frames, self._device)]
        mask = torch.zeros(4, *condition.shape[1:], device=self._device)
        if row.first_frame == 0:
            mask[:, 0] = 1
        return torch.cat((x_CFHW, mask, condition))

    def _decode(self, row: DecodeRow) -> Decoded:
        pictures, features = self.networks.vae.decode(row.x_CFHW[None], row.features)
        latents = Latents.of(row.x_CFHW.cpu().numpy())
        return Decoded(frames_of(pictures[0].transpose(0, 1), self._frame), features, latents)

    def _noise(self, key: NoiseKey) -> Tensor:
        s = self._spec
        return gaussian([key], (s.channels, s.chunk, s.rows, s.columns), self._device)[0]
