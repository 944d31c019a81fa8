"""What one layer's attention sees of a slab, and where its own keys and values go. Knows no family."""

from dataclasses import dataclass

from ...kernels.chunk_attention import AttendedPast
from ...kernels.qk_norm_rope import Staged


@dataclass(frozen=True, slots=True)
class Reach:
    """None: nothing lies before, nothing is kept."""

    past: AttendedPast | None
    staged: Staged | None
