"""Whose fault an exception of a step is.

request   of this row: its chunk fails, and its session goes on from its last commit
card      of the card's program: every row would fail (`BadFrames`, `LoopFault`, `ShortBatch`)
device    an error of CUDA that stays: nothing that this process computes can be trusted any more

After an error that stays every later call fails too, whoever makes it, so a device says nothing to its sessions: its
worker ends, and they go on from their checkpoints in another one.
"""

from enum import StrEnum

from ..drive import BadFrames, LoopFault

STICKY = (
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
    "misaligned address",
    "illegal instruction",
    "illegal address",
    "uncorrectable ecc error",
    "hardware stack error",
    "launch timed out",
    "device is lost",
    "unknown error",
    "execution_failed",
    "internal_error",
)
"""Of the messages of CUDA, cuBLAS and cuDNN, in small letters. Memory that is not there is none of them."""
OF_DEVICE = ("cuda error", "cublas", "cudnn", "hip error")


class FaultOf(StrEnum):
    """See the module docstring."""

    REQUEST = "request"
    CARD = "card"
    DEVICE = "device"


class ShortBatch(RuntimeError):
    """A runtime returned another number of results than it was given rows."""


def fault_of(problem: BaseException) -> FaultOf:
    if isinstance(problem, BadFrames | LoopFault | ShortBatch):
        return FaultOf.CARD
    text = str(problem).lower()
    sticky = any(name in text for name in OF_DEVICE) and any(sign in text for sign in STICKY)
    return FaultOf.DEVICE if isinstance(problem, RuntimeError) and sticky else FaultOf.REQUEST
