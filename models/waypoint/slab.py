"""Keys and values of all sessions' frames: local layers in the engine's ring, global layers in a ring of their own.

    near   [slots, local + 1, local layers, 2, T, G, D]               entries as the view says
    far    [slots, span / dilation + 1, global layers, 2, T, G, D]    frame f stands at (f / dilation) mod its length

The place a new frame takes in `far` is never among those the frame may read, and which ones it may read follows from
its number alone: a cancelled chunk leaves nothing behind. Attention reads entries where they lie; a commit pass writes
its own layer by layer.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.chunk_attention import AttendedPast
from ...kernels.qk_norm_rope import Staged
from ...kernels.upload import upload
from ..contract.cache import CacheView
from ..shared.reach import Reach
from ..shared.slab_bytes import Make
from .spec import WaypointSpec


class Slab:
    """See the module docstring."""

    def __init__(
        self, spec: WaypointSpec, slots: int, dtype: torch.dtype, device: torch.device, make: Make = torch.zeros
    ) -> None:
        self.spec = spec
        far, frame = len(spec.global_layers), (2, spec.tokens, spec.kv_heads, spec.head_width)
        self.near = make((slots, spec.local + 1, spec.layers - far, *frame), dtype=dtype, device=device)
        self.far = make((slots, spec.distant + 1, far, *frame), dtype=dtype, device=device)


class Window:
    """What frames of several rows see, oldest first; `writes`: their keys and values are kept.

    Rows that write share a pass only where all of them stay in the global layers, or none (`stays`).
    """

    def __init__(self, slab: Slab, views: Sequence[CacheView], frames: Sequence[int], writes: bool) -> None:
        s = self._spec = slab.spec
        ring = s.distant + 1
        newest = [-(-frame // s.dilation) for frame in frames]  # kept frames before each
        distant = [[kept % ring for kept in range(max(0, new - s.distant), new)] for new in newest]
        stays = writes and s.stays(frames[0])
        slots = [view.slot for view in views]
        self._near = _Ring(slab.near, slots, [view.committed for view in views], [v.staged for v in views], writes)
        self._far = _Ring(slab.far, slots, distant, [new % ring for new in newest], stays)

    def reach(self, layer: int) -> Reach:
        far = layer // self._spec.global_every  # global layers before this one
        return self._far.reach(far) if self._spec.is_global(layer) else self._near.reach(layer - far)


class _Ring:
    """Entries of each row's slot that are seen, and the one that is written, in a pool [slots, ring, layers, ..]."""

    def __init__(
        self, pool: Tensor, slots: Sequence[int], seen: Sequence[Sequence[int]], place: Sequence[int], writes: bool
    ) -> None:
        self._pool, ring, tokens = pool.flatten(0, 1), pool.shape[1], pool.shape[4]
        most = max(map(len, seen))
        entries = [
            [slot * ring + e for e in kept] + [-1] * (most - len(kept)) for slot, kept in zip(slots, seen, strict=True)
        ]
        lengths = [[tokens] * len(kept) + [0] * (most - len(kept)) for kept in seen]
        table = upload(torch.tensor([entries, lengths], dtype=torch.int32), pool.device)
        self._seen = table if most else None
        written = [slot * ring + entry for slot, entry in zip(slots, place, strict=True)]
        self._written = upload(torch.tensor(written, dtype=torch.int32), pool.device) if writes else None

    def reach(self, layer: int) -> Reach:
        pool = self._pool[:, layer]
        past = None if self._seen is None else AttendedPast(pool, self._seen[0], self._seen[1])
        return Reach(past, None if self._written is None else Staged(pool, self._written, False))
