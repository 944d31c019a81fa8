"""Components of a card: named parts of its weights, each on the device or away from it.

    on the device --read, slice by slice--> a host buffer, once     --drop--> away: its memory is the device's again
    away          --write, slice by slice, from that buffer-->      on the device, with the same bits

A component is one row of bytes here, whatever tensors it is made of.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

HostBytes = npt.NDArray[np.uint8]
"""Host memory, [bytes]; what its runtime copies from fastest (pinned, where the device is a GPU)."""


class ComponentWeights(Protocol):
    """What a runtime does with its components. All but `sizes`, `on_gpu`, `prompts` and `buffer` run on the device's
    thread, between steps; no step of the card runs while one of its components is away.
    """

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes on the device by component, in the order in which they go away."""
        ...

    @property
    def on_gpu(self) -> bool:
        """A GPU does the card's work: what a thread hands over is done later."""
        ...

    @property
    def prompts(self) -> tuple[str, ...]:
        """The components that encoding a prompt needs."""
        ...

    def buffer(self, size: int) -> HostBytes: ...

    def read(self, component: str, start: int, into: HostBytes) -> None: ...

    def drop(self, component: str) -> None: ...

    def write(self, component: str, start: int, data: HostBytes) -> None:
        """The first slice, at 0, takes the memory for all of it."""
        ...
