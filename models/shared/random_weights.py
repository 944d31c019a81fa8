"""Random weights: the same bits on every machine, from counter-based noise keyed by a tensor's name.

Layers that a fresh network would start at zero are drawn too, so that every part of it shows in the result.
"""

import hashlib

import torch
from torch import nn

from ...kernels.philox import NoiseKey, gaussian


def draw(module: nn.Module, seed: int) -> None:
    """Weights of unit gain, norms about 1, all else small; for inference only."""
    module.eval().requires_grad_(False)
    for name, parameter in module.named_parameters():
        branch = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "little")
        noise = torch.from_numpy(gaussian(NoiseKey(seed, branch, 0, 0), tuple(parameter.shape)))
        if "norm" in name or name.endswith("gamma"):
            parameter.copy_(1 + 0.1 * noise)
        elif parameter.ndim > 1 and "modulation" not in name:
            parameter.copy_(noise / parameter[0].numel() ** 0.5)
        else:
            parameter.copy_(0.1 * noise)
