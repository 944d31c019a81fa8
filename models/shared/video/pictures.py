"""What a decoder makes, as a card hands it on: RGB, or I420 of the shown size where a kernel makes it in one pass.

    decoder, on the device -> clamp -> bytes            RGB   3 bytes a model pixel
                           -> frames_to_yuv             I420  1.5 bytes a shown pixel, nothing left to convert

Which of the two follows from the device, once, when a card is loaded. Knows no encoder.

Legend: T frames, 3 channels, H W rows and columns.
"""

from dataclasses import replace
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....kernels.backend import Backend
from ....kernels.frames_to_yuv import YuvLayout, choose, frames_to_yuv
from ...contract.card import FrameSpec, Pixels


def frames_on(frame: FrameSpec, device: torch.device) -> FrameSpec:
    """The frames of a card on that device: I420 where the kernel runs, else as `frame` says.

    Enlarged pictures stay RGB: as many shown pixels are more bytes than the model's own.
    """
    if frame.scale > 1:
        return frame
    like = torch.empty((), dtype=torch.uint8, device=device).expand(1, 3, frame.height, frame.width)
    return replace(frame, pixels=Pixels.I420) if choose(like).backend is Backend.TRITON else frame


def frames_of(pictures_T3HW: Tensor, frame: FrameSpec) -> NDArray[np.uint8]:
    """Frames on the host, [T, ...] as `frame.shape` says, from pictures in about -1..1 of the model's size."""
    match frame.pixels:
        case Pixels.RGB:
            levels = (pictures_T3HW.float().clamp(-1, 1) * 127.5 + 127.5).round().to(torch.uint8)
            return levels.permute(0, 2, 3, 1).contiguous().cpu().numpy()
        case Pixels.I420:
            planes = frames_to_yuv(pictures_T3HW, YuvLayout.I420, frame.scale, frame.smooth)
            return planes.view(-1, *frame.each).cpu().numpy()
        case _:
            assert_never(frame.pixels)
