"""What the dream's transformer takes over from drive's painter before it is trained: all that paints, no camera.

The painter's memory tokens become registers that are told of recurrent tokens; what it knew of innovations is dropped.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...models.dream.recurrent import Reader, Spread
from ...models.dream.shape import DreamShape
from ...models.dream.transformer import DreamTransformer
from ...models.drive.memory import CHANNELS, MEMORY_TOKENS
from ...models.drive.transformer import DriveTransformer
from .stage_recurrence import Recurrence

OFFERED = 0.1  # mean of what an innovation says of an offered object
OLDER = 1.0  # how much less frames beyond the painter's window are listened to at first


@torch.no_grad()
def begun(
    shape: DreamShape, recurrence: Recurrence, reader: Reader, spread: Spread, painter: DriveTransformer
) -> DreamTransformer:
    network = DreamTransformer(shape)
    network.recurrent.load_state_dict(recurrence.recurrent.state_dict())
    network.reader.load_state_dict(reader.state_dict())
    network.spread.load_state_dict(spread.state_dict())
    painted, own = painter.state_dict(), network.state_dict()
    for name, tensor in painted.items():
        if name in own and own[name].shape == tensor.shape:
            own[name].copy_(tensor)
        elif name.endswith("age_bias"):
            known = tensor.shape[1]
            own[name][:, :known] = tensor
            own[name][:, known:] = tensor[:, -1:] - OLDER
    own["inward.weight"].copy_(torch.cat([painted["inward.picture.weight"], torch.zeros(shape.width, CHANNELS)], 1))
    own["inward.bias"].copy_(painted["inward.picture.bias"])
    own["context_inward.weight"].copy_(painted["context_inward.picture.weight"])
    own["context_inward.bias"].copy_(painted["context_inward.picture.bias"])
    innovations = torch.tensor([0.0, OFFERED, 0.0, OFFERED, 0.0])
    own["from_controls.bias"].add_(painted["from_innovations.bias"] + painted["from_innovations.weight"] @ innovations)
    own["from_noise.weight"].zero_()
    _tell_registers(own, painted, recurrence)
    return network


def _tell_registers(own: dict[str, Tensor], painted: dict[str, Tensor], recurrence: Recurrence) -> None:
    """What the painter's context hears of memory, as a linear map of recurrent tokens."""
    known, width = MEMORY_TOKENS * CHANNELS, len(painted["place"][0])
    heard = painted["context_inward.memory.weight"].view(width, 3, CHANNELS).sum(1)  # three frames, taken as alike
    read = recurrence.reads.weight[:known].view(MEMORY_TOKENS, CHANNELS, -1)
    off = recurrence.reads.bias[:known].view(MEMORY_TOKENS, CHANNELS)
    weight = torch.einsum("wc,mcr->mwr", heard, read)
    bias = off @ heard.T + painted["context_inward.memory.bias"]
    own["context_state.weight"].copy_(weight.flatten(0, 1))
    own["context_state.bias"].copy_(bias.flatten())
