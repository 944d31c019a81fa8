"""A checked component into a network: our names, the runtime's dtype, every value finite."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from ..weights import WeightsError
from .check import Found, find
from .manifest import ComponentManifest, Shape


def load_component(component: ComponentManifest, root: Path, module: nn.Module) -> Found:
    """Fill the module's parameters and buffers, each in the dtype and on the device it has; raises `WeightsError`."""
    found = find(component, root)
    state = module.state_dict()
    module.load_state_dict({key: tensor.to(state[key]) for key, tensor in read(found).items()})
    return found


def read(found: Found) -> dict[str, Tensor]:
    """All tensors under our names as they are stored; raises `WeightsError` for NaN and infinity."""
    tensors = {}
    for key, entry in found.table.items():
        tensor = entry.read()
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor.float()).all()):
            raise WeightsError(entry.file, f"key '{found.layout.keys.to_public(key)}' holds NaN or infinity")
        tensors[key] = tensor
    return tensors


def digest(parts: Sequence[Found]) -> str:
    """sha256 over component names, keys, dtypes and values, so the same weights in any layout have one digest."""
    total = hashlib.sha256()
    for found in sorted(parts, key=lambda part: part.component):
        for key in sorted(found.table):
            tensor = found.table[key].read().contiguous()
            total.update(f"{found.component}\0{key}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
            total.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def shapes(module: nn.Module) -> dict[str, Shape]:
    """Keys and shapes of a network, also of one built on the meta device: the body of a manifest's `expects`."""
    return {key: tuple(value.shape) for key, value in module.state_dict().items()}
