"""Precision checks of the Wan cards: narrow weights, narrow keys and values, and compiled blocks against the plain run.

One world is made in float32; every step of it is also run, from the same rows, by a second runtime whose cache it fills
itself. Velocities of last denoise steps are compared, so errors do not grow from chunk to chunk.
"""

from collections.abc import Iterator
from functools import partial

import torch

from ...contract.cache_key import key_of
from ...contract.loop import StepKind
from ...contract.recipe import Precision
from ...parity.ladder import Pair, ParityCheck, ParityLevel, ParityMissing
from ...parity.session import ChunkInput, ParitySession
from ...shared.compiled import CompileCache, NoCompiler, require_compiler
from ...shared.fp8 import computes, narrow
from .. import random_weights
from ..rows import Denoised, DenoiseRow, Sharing
from ..runtime import WanRuntime
from ..spec import WanSpec
from .rollout import SEED, TWO_PROMPTS, loaded

PASSES = (StepKind.DENOISE, StepKind.COMMIT, StepKind.RECACHE)


def precision_checks(spec: WanSpec, declared: tuple[tuple[Precision, float], ...]) -> tuple[ParityCheck, ...]:
    """One check for each precision the recipe declares, and one for fp8 as devices with such arithmetic compute it."""
    checks = [
        ParityCheck(ParityLevel.PRECISION, f"{precision} against fp32", tolerance, partial(_narrow, spec, precision))
        for precision, tolerance in declared
    ]
    if (tolerance := dict(declared).get(Precision.FP8)) is not None:
        computed = partial(_narrow, spec, Precision.FP8, computed=True)
        checks.append(ParityCheck(ParityLevel.PRECISION, "fp8 products against fp32", tolerance, computed))
    return tuple(checks)


def compiled_check(spec: WanSpec, tolerance: float) -> ParityCheck:
    """Slow: a C++ compiler works for every part and shape."""
    return ParityCheck(
        ParityLevel.PRECISION,
        "compiled blocks against eager",
        tolerance,
        partial(_compiled, spec, tolerance),
        slow=True,
    )


def _narrow(spec: WanSpec, precision: Precision, computed: bool = False) -> Iterator[Pair]:
    """`computed`: activations are 8-bit floats too."""
    dtype = torch.float32 if precision.full else torch.bfloat16
    networks = random_weights.networks(spec, dtype)
    if precision.narrow_weights:
        narrow(networks.transformer.blocks, (lambda x, weight: True) if computed else computes)
    yield from _side_by_side(spec, WanRuntime(spec, networks, dtype, Sharing.ALONE, precision.narrow_kv), chunks=9)


def _compiled(spec: WanSpec, tolerance: float) -> Iterator[Pair]:
    try:
        require_compiler(torch.device("cpu"))
    except NoCompiler as problem:
        raise ParityMissing(str(problem)) from problem
    cache = CompileCache(key_of(loaded(spec)), tolerance)
    runtime = WanRuntime(
        spec, random_weights.networks(spec, torch.float32), torch.float32, Sharing.ALONE, compiled=cache
    )
    yield from _side_by_side(spec, runtime, chunks=3)


def _side_by_side(spec: WanSpec, other: WanRuntime, chunks: int) -> Iterator[Pair]:
    plain = loaded(spec)
    plain.runtime.allocate(1)
    other.allocate(1)
    inputs = [ChunkInput((), (0.0, 0.0), TWO_PROMPTS[chunk > chunks // 2]) for chunk in range(chunks)]
    session = ParitySession(plain, 0, SEED, inputs, plain.runtime.encode_prompt)
    while not session.finished:
        session.begin()
        while (plan := session.plan) is not None:
            view, row = session.view(), plan.row
            (result,) = plain.runtime.execute(plan.kind, [row], [view])
            made = other.execute(plan.kind, [row], [view])[0] if plan.kind in PASSES else None
            last = isinstance(row, DenoiseRow) and row.next_sigma == 0
            if last and isinstance(result, Denoised) and isinstance(made, Denoised):
                ours, reference = ((row.x_CFHW - r.x_CFHW) / row.sigma for r in (made, result))
                yield Pair(len(session.outcomes), "denoise", "velocity", ours.numpy(), reference.numpy())
            session.advance(result)
