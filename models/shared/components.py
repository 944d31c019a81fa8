"""Components of a card as torch modules: their memory is given back and taken again under the same tensors.

A tensor's storage shrinks to nothing and grows again, as FSDP does it (`UntypedStorage.resize_`): parameters, views and
tied weights stay the objects they are, so nothing that holds one has to hear of it. What has noted addresses (a CUDA
graph) has to: `moved` is called.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from ..contract.components import HostBytes


class TorchComponents:
    """Implements `contract.components.ComponentWeights`. `modules` by component, in the order of going away; None = it
    has none. `prompts`: those that encode prompts. A storage that several share belongs to the first.
    """

    def __init__(
        self,
        modules: Mapping[str, nn.Module | None],
        prompts: tuple[str, ...] = (),
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        seen: set[int] = set()
        self._storages = {
            name: tuple(_storages(module, seen)) for name, module in modules.items() if module is not None
        }
        self._spans = {
            name: tuple(storage.nbytes() for storage in storages) for name, storages in self._storages.items()
        }
        self.sizes = {name: sum(spans) for name, spans in self._spans.items() if spans}
        self.on_gpu = any(storage.device.type == "cuda" for storages in self._storages.values() for storage in storages)
        self.prompts = tuple(name for name in prompts if name in self.sizes)
        self._moved = moved

    def buffer(self, size: int) -> HostBytes:
        buffer: HostBytes = torch.empty(size, dtype=torch.uint8, pin_memory=torch.cuda.is_available()).numpy()
        return buffer

    def read(self, component: str, start: int, into: HostBytes) -> None:
        target = torch.from_numpy(into)
        for flat, here, there, count in self._slices(component, start, len(into)):
            target[there : there + count].copy_(flat[here : here + count])

    def drop(self, component: str) -> None:
        self._moved()
        for storage in self._storages[component]:
            storage.resize_(0)

    def write(self, component: str, start: int, data: HostBytes) -> None:
        if start == 0:
            for storage, size in zip(self._storages[component], self._spans[component], strict=True):
                storage.resize_(size)
        source = torch.from_numpy(np.asarray(data))
        for flat, here, there, count in self._slices(component, start, len(data)):
            flat[here : here + count].copy_(source[there : there + count])

    def _slices(self, component: str, start: int, count: int) -> Iterator[tuple[Tensor, int, int, int]]:
        """Of each storage that [start, start + count) meets: its bytes, where there and in the slice, and how many."""
        at, end = 0, start + count
        for storage, size in zip(self._storages[component], self._spans[component], strict=True):
            first, last = max(start, at), min(end, at + size)
            if first < last:
                flat = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
                yield flat, first - at, first - start, last - first
            at += size


def _storages(module: nn.Module, seen: set[int]) -> Iterator[torch.UntypedStorage]:
    """Those of all parameters and buffers, each once; one that cannot shrink (a mapped file) is copied first."""
    for tensor in (*module.parameters(), *module.buffers()):
        if not tensor.untyped_storage().resizable():
            tensor.data = tensor.data.clone()
        storage = tensor.untyped_storage()
        if storage.nbytes() and storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            yield storage
