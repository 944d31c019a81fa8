"""The ladder's checks and how one is judged: ours against a reference, probe by probe, within a stated tolerance.

    C0          one component against diffusers, transformers or an independently written golden
    C1          a whole rollout with a fixed seed against the family's golden
    interleave  sessions in mixed batches against the same sessions alone
    precision   a run in narrow numbers, or compiled, against the plain one, within what the recipe declares

A probe is a value taken on the way (step, block, name), in the order of computation, so the first one that is off says
where to look. Knows no family and no tensor library: values are numpy arrays.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import numpy as np
import numpy.typing as npt


class ParityLevel(StrEnum):
    C0 = "C0"
    C1 = "C1"
    INTERLEAVE = "interleave"
    PRECISION = "precision"


class ParityMissing(RuntimeError):
    """What a check needs is not installed; it is skipped and says so."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One probe: ours and the reference at (step, block, name)."""

    step: int
    block: str
    name: str
    ours: npt.NDArray[np.generic]
    reference: npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class ParityCheck:
    """One check of one card. `tolerance` is the max abs error allowed; 0 = bit-equal. `run` may raise `ParityMissing`.

    `slow`: takes minutes, so it is climbed only when asked for.
    """

    level: ParityLevel
    subject: str
    tolerance: float
    run: Callable[[], Iterable[Pair]]
    slow: bool = False


class ParityDiverged(msgspec.Struct, frozen=True):
    """The first probe beyond the tolerance."""

    step: int
    block: str
    probe: str
    error: float


class ParityVerdict(msgspec.Struct, frozen=True):
    """`figure`: the largest max abs error of all probes; None when skipped (`why`)."""

    card: str
    level: str
    subject: str
    figure: float | None
    tolerance: float
    probes: int
    ok: bool
    diverged: ParityDiverged | None = None
    why: str = ""


def judge(card: str, check: ParityCheck) -> ParityVerdict:
    """Run a check to its end and judge it. A check without a single probe fails: it compared nothing."""
    figure, probes, diverged = 0.0, 0, None
    try:
        for pair in check.run():
            error = max_abs_error(pair.ours, pair.reference)
            probes += 1
            figure = max(figure, error)
            if diverged is None and error > check.tolerance:
                diverged = ParityDiverged(pair.step, pair.block, pair.name, error)
    except ParityMissing as missing:
        return ParityVerdict(card, check.level, check.subject, None, check.tolerance, 0, True, None, str(missing))
    ok = diverged is None and probes > 0
    why = "" if probes else "nothing was compared"
    return ParityVerdict(card, check.level, check.subject, figure, check.tolerance, probes, ok, diverged, why)


def max_abs_error(ours: npt.NDArray[np.generic], reference: npt.NDArray[np.generic]) -> float:
    """Largest |ours - reference|; infinity when shapes differ or one side is not finite where the other is."""
    if ours.shape != reference.shape:
        return math.inf
    if ours.size == 0:
        return 0.0
    if not np.issubdtype(ours.dtype, np.floating) and not np.issubdtype(reference.dtype, np.floating):
        return 0.0 if np.array_equal(ours, reference) else _integer_error(ours, reference)
    a, b = ours.astype(np.float64), reference.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        error = float(np.where(same, 0.0, np.abs(a - b)).max())
    return math.inf if math.isnan(error) else error


def _integer_error(ours: npt.NDArray[np.generic], reference: npt.NDArray[np.generic]) -> float:
    return float(max(abs(int(a) - int(b)) for a, b in zip(ours.ravel(), reference.ravel(), strict=True)))
