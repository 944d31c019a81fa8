"""Whose fault an exception is, by what CUDA says and by what the engine raises."""

import pytest
from worldroom.engine.device.faults import FaultOf, ShortBatch, fault_of
from worldroom.engine.drive import LoopFault
from worldroom.engine.worker import watchdog


@pytest.mark.parametrize(
    ("problem", "whose"),
    [
        (RuntimeError("CUDA error: an illegal memory access was encountered"), FaultOf.DEVICE),
        (RuntimeError("CUDA error: device-side assert triggered\nCompile with TORCH_USE_CUDA_DSA"), FaultOf.DEVICE),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasGemmEx"), FaultOf.DEVICE),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), FaultOf.REQUEST),
        (RuntimeError("CUDA error: out of memory"), FaultOf.REQUEST),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), FaultOf.REQUEST),
        (FloatingPointError("3 numbers are not finite"), FaultOf.REQUEST),
        (ShortBatch("denoise of 'ripple': 2 rows, 1 results"), FaultOf.CARD),
        (LoopFault("it asks for a step that the card does not name"), FaultOf.CARD),
    ],
)
def test_whose_fault_it_is(problem: Exception, whose: FaultOf) -> None:
    assert fault_of(problem) is whose


def test_case_74_a_worker_that_runs_one_long_step_is_not_said_to_be_silent() -> None:
    assert watchdog.said(silence=0.0, busy=2.5, patience=2.0) == (
        "a step runs for 2.5 s, 2.0 s are its patience (`worldroom serve --patience`)"
    )
    assert watchdog.said(silence=0.7, busy=0.0, patience=0.0) == "silent for 0.7 s"
