"""Guidance: one velocity out of one with and one without the prompt. Pure functions of tensors.

    plain      u + s (c - u)
    zero       a u + s (c - a u)     a = <c, u> / <u, u>, and no move at all in the first step
Source: classifier-free guidance (2207.12598); CFG-Zero* (2503.18886, eq. 9 and section 4.2).
"""

from torch import Tensor

from ..rows import Policy


def guided(policy: Policy, scale: float, with_CFHW: Tensor, without_CFHW: Tensor) -> Tensor:
    """The velocity to follow, of one row."""
    if policy is Policy.CFG_ZERO:
        c, u = with_CFHW.double(), without_CFHW.double()
        fit = (c * u).sum() / (u * u).sum().clamp_min(1e-12)
        without_CFHW = (u * fit).float()
    return without_CFHW + scale * (with_CFHW - without_CFHW)


def stands_still(policy: Policy, sigma: float) -> bool:
    """CFG-Zero makes no move from pure noise."""
    return policy is Policy.CFG_ZERO and sigma >= 1.0
