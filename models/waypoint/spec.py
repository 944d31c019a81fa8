"""The sizes of the Waypoint cards as far as they are public, and what is not. Knows no tensor library.

Public: the rollout (four Euler steps, frozen cache, one commit pass), window sizes and dilation, the share of rotary
axes, grouped heads, where controls and prompt enter, the sizes of Waypoint-1.1-Small. `MISSING` says what is not, so
published weights cannot be loaded and no parity with them is claimed; the tiny card has random weights.
"""

from dataclasses import dataclass, replace

SIGMAS = (1.0, 0.861, 0.729, 0.3205)  # the last step ends at 0
BUTTONS = 256
MISSING = (
    "the names of the tensors in model.safetensors",
    "width of the feed forward and of the control network, and their activations",
    "how noise level and controls modulate a layer, and the norms of queries and keys",
    "the autoencoder: its layers, the channels of a latent and its normalisation",
    "the base of the rotary angles and the scale of the mouse's units",
)


@dataclass(frozen=True, slots=True)
class WaypointSpec:
    """One card. Layer i is global when `i % global_every == global_every - 1`; it keeps every `dilation`th frame.

    `local`: frames a local layer sees before its own; `span`: how far back a global one looks, at every dilated frame.
    """

    name: str
    title: str
    width: int = 2560
    layers: int = 22
    heads: int = 40
    kv_heads: int = 20
    rows: int = 16
    columns: int = 16
    channels: int = 16
    patch: int = 8
    prompt_width: int = 2048
    prompt_length: int = 64
    local: int = 16
    span: int = 128
    dilation: int = 8
    global_every: int = 4
    fuse_every: int = 3
    fps: int = 60
    scale: int = 1
    random: bool = False

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def tokens(self) -> int:
        return self.rows * self.columns

    @property
    def distant(self) -> int:
        """Frames a global layer keeps, besides its own."""
        return self.span // self.dilation

    def stays(self, frame: int) -> bool:
        """Whether that frame stays in the global layers."""
        return frame % self.dilation == 0

    def is_global(self, layer: int) -> bool:
        return layer % self.global_every == self.global_every - 1

    @property
    def global_layers(self) -> tuple[int, ...]:
        return tuple(layer for layer in range(self.layers) if self.is_global(layer))


def small() -> WaypointSpec:
    return WaypointSpec("waypoint-1.1-small", "Waypoint 1.1 Small")


def tiny() -> WaypointSpec:
    return replace(
        small(),
        name="waypoint-tiny-random",
        title="Waypoint, tiny and random",
        width=32,
        layers=4,
        heads=4,
        kv_heads=2,
        rows=4,
        columns=6,
        channels=4,
        patch=16,
        prompt_width=8,
        prompt_length=4,
        local=3,
        span=8,
        dilation=2,
        fps=24,
        scale=6,
        random=True,
    )


SPECS = {spec.name: spec for spec in (small(), tiny())}
