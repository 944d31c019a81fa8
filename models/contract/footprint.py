"""What a card costs at its size, by arithmetic alone: bytes that must be resident and FLOPs a chunk needs.

A multiply and an add are two FLOPs. `steps` are counted by the loop's own shape: n denoise passes, one commit pass.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FootprintPart:
    """One component: its parameters, and whatever else its files hold that must be resident (tables, ranges).

    How often its weights are read per chunk is its caller's affair.
    """

    name: str
    parameters: int
    bytes_per_parameter: float

    @property
    def weight_bytes(self) -> int:
        return round(self.parameters * self.bytes_per_parameter)


@dataclass(frozen=True, slots=True)
class StepCost:
    """One kind of step of one session: FLOPs of one pass and how many passes a chunk makes.

    `reads`: the part whose weights a pass reads, once for all its rows. `row_bytes`: of the session's caches.
    """

    name: str
    flop: int
    passes: int
    reads: str = ""
    row_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Footprint:
    """A card at steady state (window full). `activation_bytes`: peak of one row of the largest step.

    `session_bytes`: chunk-KV, feature caches of the streaming decoder, carried latents. `narrow_kv_bytes`: chunk-KV as
    8-bit integers, 0 = not offered. `prompt`: encoding one text, where that is a network of any size.
    """

    parts: tuple[FootprintPart, ...]
    steps: tuple[StepCost, ...]
    kv_bytes: int
    decoder_bytes: int
    carry_bytes: int
    activation_bytes: int
    chunk_seconds: float
    narrow_kv_bytes: int = 0
    prompt: StepCost | None = None

    @property
    def weight_bytes(self) -> int:
        return sum(part.weight_bytes for part in self.parts)

    def read_bytes(self, step: StepCost) -> int:
        """Weights that a pass of this step reads."""
        return sum(part.weight_bytes for part in self.parts if part.name == step.reads)

    @property
    def session_bytes(self) -> int:
        return self.kv_bytes + self.decoder_bytes + self.carry_bytes

    @property
    def flop_per_chunk(self) -> int:
        return sum(step.flop * step.passes for step in self.steps)

    @property
    def flop_per_second(self) -> float:
        """What a card played at its own pace needs."""
        return self.flop_per_chunk / self.chunk_seconds
