"""RGB to what an encoder reads: the kernel's bytes are the formula's, colours are those of BT.709."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from worldroom.kernels.backend import Backend
from worldroom.kernels.checks import BadInput
from worldroom.kernels.frames_to_yuv import YuvLayout, cubic_weights, frames_to_yuv
from worldroom.tests.kernel_checks import drawn, poisoned


@given(
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 2)),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(YuvLayout),
    st.sampled_from((torch.float32, torch.bfloat16, torch.uint8)),
    st.integers(0, 99),
)
@settings(max_examples=6, deadline=None)
def test_the_kernel_makes_the_formulas_bytes(
    size: tuple[int, int, int], scale: int, smooth: bool, layout: YuvLayout, dtype: torch.dtype, seed: int
) -> None:
    frames, height, width = size
    x = drawn((frames, 2 * height, 2 * width, 3), seed)
    x = ((x + 1) * 120).clamp(0, 255) if dtype is torch.uint8 else x
    rgb = x.to(dtype).permute(0, 3, 1, 2)
    with poisoned():
        made = frames_to_yuv(rgb, layout, scale, smooth, backend=Backend.TRITON)
    assert made.shape == (frames, 6 * height * width * scale**2)
    assert torch.equal(made, frames_to_yuv(rgb, layout, scale, smooth))


@pytest.mark.parametrize(
    ("rgb", "yuv"),
    [
        ((255, 255, 255), (235, 128, 128)),
        ((0, 0, 0), (16, 128, 128)),
        ((255, 0, 0), (63, 102, 240)),
        ((0, 255, 0), (173, 42, 26)),
        ((0, 0, 255), (32, 240, 118)),
    ],
)
def test_colours_of_bt_709(rgb: tuple[int, int, int], yuv: tuple[int, int, int]) -> None:
    frame = torch.tensor(rgb, dtype=torch.uint8)[None, :, None, None].expand(1, 3, 2, 2)
    assert frames_to_yuv(frame).tolist() == [[yuv[0]] * 4 + [yuv[1], yuv[2]]]
    assert torch.equal(frames_to_yuv(frame.float() / 127.5 - 1), frames_to_yuv(frame))


def test_planes_lie_as_the_layout_says() -> None:
    """A red left half and a blue right half, two rows of four pixels."""
    frame = torch.zeros(1, 3, 2, 4, dtype=torch.uint8)
    frame[:, 0, :, :2], frame[:, 2, :, 2:] = 255, 255
    luma = [63, 63, 32, 32] * 2
    assert frames_to_yuv(frame, YuvLayout.I420).tolist() == [[*luma, 102, 240, 240, 118]]
    assert frames_to_yuv(frame, YuvLayout.NV12).tolist() == [[*luma, 102, 240, 240, 118]]
    tall = frame.transpose(2, 3)
    assert frames_to_yuv(tall, YuvLayout.I420)[0, 8:].tolist() == [102, 240, 240, 118]
    wide = frame.repeat_interleave(2, 3)
    assert frames_to_yuv(wide, YuvLayout.I420)[0, 16:].tolist() == [102, 102, 240, 240, 240, 240, 118, 118]
    assert frames_to_yuv(wide, YuvLayout.NV12)[0, 16:].tolist() == [102, 240, 102, 240, 240, 118, 240, 118]


def test_values_beyond_the_range_are_clamped() -> None:
    assert frames_to_yuv(torch.full((1, 3, 2, 2), 9.0)).tolist() == [[235] * 4 + [128] * 2]
    assert frames_to_yuv(torch.full((1, 3, 2, 2), -9.0)).tolist() == [[16] * 4 + [128] * 2]


def test_bicubic_is_cubic_convolution() -> None:
    """Weights sum to one and reproduce a ramp; nearest repeats pixels."""
    weights = cubic_weights(4).double()
    assert torch.allclose(weights.sum(1), torch.ones(4, dtype=torch.float64))
    centre = torch.tensor([-1.0, 0.0, 1.0, 2.0], dtype=torch.float64)
    at = (weights * centre).sum(1)
    assert torch.allclose(at, torch.tensor([0.625, 0.875, 0.125, 0.375], dtype=torch.float64))
    ramp = torch.linspace(-0.5, 0.5, 8).expand(1, 3, 8, 8)
    smooth = frames_to_yuv(ramp, scale=2, smooth=True)[0, : 16 * 16].reshape(16, 16).float()
    assert (smooth[:, 4:13] - smooth[:, 3:12] - 219 / 28).abs().max() <= 1
    grey = drawn((1, 1, 4, 4), 0).expand(1, 3, 4, 4)
    wanted = F.interpolate(grey, scale_factor=2, mode="nearest")
    assert torch.equal(frames_to_yuv(grey, scale=2), frames_to_yuv(wanted))


def test_refuses_what_does_not_fit_with_the_numbers() -> None:
    with pytest.raises(BadInput, match="3 x 2 is odd"):
        frames_to_yuv(torch.zeros(1, 3, 2, 3))
    with pytest.raises(BadInput, match=r"frames is \[1, 4, 2, 2\]"):
        frames_to_yuv(torch.zeros(1, 4, 2, 2))
    with pytest.raises(BadInput, match="scale 0 is below 1"):
        frames_to_yuv(torch.zeros(1, 3, 2, 2), scale=0)
    with pytest.raises(BadInput, match=r"frames is torch\.int32"):
        frames_to_yuv(torch.zeros(1, 3, 2, 2, dtype=torch.int32))
