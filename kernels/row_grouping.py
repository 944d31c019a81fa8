"""Equal parts in one call of a library, where that has been seen to give each part the bits it has alone.

Libraries choose kernels by size, so a part's last bits may depend on how many parts share its call. Whether they do
hangs on machine, sizes and threads: callers ask once, with drawn numbers and every count up to TOGETHER, and keep the
answer. Where it is no the parts run one by one. Either way the result is that of one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

TOGETHER = 8  # parts of one call at most
ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]

Run = Callable[[Tensor], Tensor]


def alike(run: Run, x: Tensor, size: int) -> bool:
    """Whether any first 2, 3, .. parts of `x`, each `size` long on axis 0, have in one call the bits of one by one."""
    alone = torch.cat([run(part) for part in torch.split(x, size)])
    return all(torch.equal(run(x[:end]), alone[:end]) for end in range(2 * size, len(x) + 1, size))


def by_parts(run: Run, x: Tensor, size: int, together: bool) -> Tensor:
    """`run` over all parts of `x` on axis 0: one by one, or as many in a call as `alike` has asked for."""
    done = [run(part) for part in torch.split(x, size * TOGETHER if together else size)]
    return done[0] if len(done) == 1 else torch.cat(done)
