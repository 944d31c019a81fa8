"""Memory that the C library keeps after a session has gone: encoders and latents of many threads leave holes in heaps.

glibc gives back only what lies free at a heap's top, so a worker grows with every room. `give_back` is its own call for
the rest; where the C library has none (musl, macOS) nothing is done.

The collector of garbage stops everything while it goes through all objects. `set_apart` spares it those that a process
began with, which are most of them and stay.
"""

import ctypes
import gc
import sys


def give_back() -> None:
    """Blocking, milliseconds; call it on a thread, off the hot path."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def set_apart() -> None:
    """Once, when everything is loaded; blocking, a tenth of a second."""
    gc.collect()
    gc.freeze()
