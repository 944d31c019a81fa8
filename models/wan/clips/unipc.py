"""UniPC of second order for flow models, one step at a time: pure functions of tensors, in float64.

    velocity at x_i -> clean prediction -> x_i corrected with it -> x_(i+1) predicted from it and the one before

Source: UniPC (2302.04867), prediction of the clean sample, B(h) = e^h - 1 (its "bh2"), lower order at both ends.
Legend: s where a step starts, t where it ends, l = log((1 - sigma) / sigma), h = l_t - l_s.
"""

import math
from collections.abc import Sequence

import msgspec
from torch import Tensor

ORDER = 2
ALMOST_ONE = 1 - 1e-6


class Solver(msgspec.Struct, frozen=True):
    """What a step needs of those before it. `clean`: their predictions, newest last, at most two; `start_CFHW`: where
    the last step started; `order` it was made with, 0 = there was none.
    """

    clean: tuple[Tensor, ...] = ()
    start_CFHW: Tensor | None = None
    order: int = 0


def timestep(sigma: float) -> float:
    """What the network is told: whole steps of a thousand, as the weights' own pipeline tells them."""
    return float(int(min(sigma, ALMOST_ONE) * 1000))


def advance(
    solver: Solver, levels: Sequence[float], step: int, x_CFHW: Tensor, velocity_CFHW: Tensor
) -> tuple[Tensor, Solver]:
    """The next x in float32. `levels`: noise levels of all steps, then 0; `x_CFHW`: where `velocity_CFHW` was taken."""
    sigmas = [min(level, ALMOST_ONE) for level in levels]
    x = x_CFHW.double()
    clean = x - sigmas[step] * velocity_CFHW.double()
    if solver.order and solver.start_CFHW is not None:
        x = _corrected(solver, sigmas, step, clean)
    kept = (*solver.clean, clean)[-ORDER:]
    order = min(ORDER, solver.order + 1, len(sigmas) - 1 - step)
    return _predicted(x, kept, sigmas, step, order).float(), Solver(kept, x, order)


def _predicted(x: Tensor, clean: Sequence[Tensor], sigmas: Sequence[float], step: int, order: int) -> Tensor:
    """From level `step` to the next one."""
    s, t = sigmas[step], sigmas[step + 1]
    if t == 0:
        return clean[-1]
    h = _log(t) - _log(s)
    grown = math.expm1(-h)
    y = (t / s) * x - (1 - t) * grown * clean[-1]
    if order == 2:
        r = (_log(sigmas[step - 1]) - _log(s)) / h
        y = y - (1 - t) * grown * 0.5 * (clean[-2] - clean[-1]) / r
    return y


def _corrected(solver: Solver, sigmas: Sequence[float], step: int, clean: Tensor) -> Tensor:
    """x at level `step`, again, from where the last step started, now that the prediction there is known."""
    s, t = sigmas[step - 1], sigmas[step]
    h = _log(t) - _log(s)
    grown, before = math.expm1(-h), solver.clean[-1]
    start = solver.start_CFHW
    assert start is not None, "a step was made"
    y = (t / s) * start - (1 - t) * grown * before
    if solver.order == 1:
        return y - (1 - t) * grown * 0.5 * (clean - before)
    r = (_log(sigmas[step - 2]) - _log(s)) / h
    first = grown / -h - 1
    b1, b2 = first / grown, (first / -h - 0.5) * 2 / grown
    share = (b1 - b2) / (1 - r)
    old = (solver.clean[-2] - before) / r
    return y - (1 - t) * grown * (share * old + (b1 - share) * (clean - before))


def _log(sigma: float) -> float:
    return math.log((1 - sigma) / sigma)
