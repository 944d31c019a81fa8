"""A card's program: the graph its work goes through, and where each node of it runs. Typed data on the card.

    input --text--> prompt_encode --features--> chunk_rollout --latents--> decode --frames--> encode --packets--> output
    input --controls, first_frames--------------> chunk_rollout

A node is a loop, or a component: steps that no loop iterates, or that run elsewhere than the rest of their loop. The
last component, `encode`, is the engine's own for every card.

    device  [ denoise n ][ denoise n+1 ][ denoise n+2 ]     a decode on the auxiliary thread meets the next chunk's
    aux                  [ decode n    ][ decode n+1  ]     denoise; the bits are the same wherever it runs
"""

from dataclasses import dataclass
from enum import StrEnum

from .faults import CardFault
from .loop import CHUNK_ROLLOUT, StepKind

INPUT, OUTPUT = "input", "output"
"""The two ends of a program: what a session is told, and what it shows."""


class Placement(StrEnum):
    """DEVICE: the one thread that owns the slab. AUX: a thread of its own, for steps that touch nothing but their
    row. ENCODERS: the threads that make packets of frames.
    """

    DEVICE = "device"
    AUX = "aux"
    ENCODERS = "encoders"


class Payload(StrEnum):
    """What an edge carries."""

    TEXT = "text"
    CONTROLS = "controls"
    FIRST_FRAMES = "first_frames"
    FEATURES = "features"
    LATENTS = "latents"
    FRAMES = "frames"
    PACKETS = "packets"


@dataclass(frozen=True, slots=True)
class LoopNode:
    """A loop of the card, by its name. `every`: it runs once in so many chunks of the card's main loop."""

    name: str
    where: Placement = Placement.DEVICE
    every: int = 1


@dataclass(frozen=True, slots=True)
class ComponentNode:
    """Steps that run as one part. `loop`: whose steps they are, '' = no loop's."""

    name: str
    where: Placement
    steps: tuple[StepKind, ...] = ()
    loop: str = ""


Node = LoopNode | ComponentNode


@dataclass(frozen=True, slots=True)
class ProgramEdge:
    """`delay`: it carries what its source made so many runs of its target ago; 0 = what was made just now."""

    source: str
    target: str
    payload: Payload
    delay: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """See the module docstring. Raises `CardFault` unless the nodes and edges make a graph."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[ProgramEdge, ...]

    def __post_init__(self) -> None:
        names = [node.name for node in self.nodes]
        if len(set(names)) < len(names) or {INPUT, OUTPUT} & set(names):
            raise CardFault(self.name, "program.nodes", f"names are used once and never '{INPUT}', '{OUTPUT}': {names}")
        for edge in self.edges:
            if edge.source not in (*names, INPUT) or edge.target not in (*names, OUTPUT):
                raise CardFault(self.name, "program.edges", f"{edge.source} -> {edge.target}: nodes are {names}")
        if any(node.every < 1 for node in self.loops):
            raise CardFault(self.name, "program.nodes", "a loop runs once in 1 or more chunks")
        self._check_order(set(names))

    def _check_order(self, waiting: set[str]) -> None:
        """Without the edges that carry older results the graph has no circle."""
        now = [edge for edge in self.edges if edge.delay == 0]
        while waiting:
            free = {name for name in waiting if not any(e.target == name and e.source in waiting for e in now)}
            if not free:
                raise CardFault(self.name, "program.edges", f"{', '.join(sorted(waiting))} wait for each other")
            waiting = waiting - free

    @property
    def loops(self) -> tuple[LoopNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, LoopNode))

    def where(self, loop: str, kind: StepKind) -> Placement:
        """Where a step runs; `loop` '' = a step of no loop. What no node names (cache_io) belongs to the device."""
        for node in self.nodes:
            match node:
                case ComponentNode() if node.loop == loop and kind in node.steps:
                    return node.where
                case _:
                    pass
        return next((node.where for node in self.loops if node.name == loop), Placement.DEVICE)

    def payloads(self, source: str | None = None, target: str | None = None) -> tuple[Payload, ...]:
        """What edges from `source`, or to `target`, carry; each once."""
        ends = [e for e in self.edges if source in (None, e.source) and target in (None, e.target)]
        return tuple(dict.fromkeys(edge.payload for edge in ends))


def realtime(decode: Placement = Placement.DEVICE, loop: str = CHUNK_ROLLOUT) -> Program:
    """A session of one loop: prompts, controls and first frames go in, packets come out."""
    return Program(
        "realtime",
        (
            ComponentNode("prompt_encode", Placement.DEVICE, (StepKind.PROMPT_ENCODE,)),
            LoopNode(loop),
            ComponentNode("decode", decode, (StepKind.DECODE, StepKind.PREVIEW), loop),
            ComponentNode("encode", Placement.ENCODERS),
        ),
        (
            ProgramEdge(INPUT, "prompt_encode", Payload.TEXT),
            ProgramEdge(INPUT, loop, Payload.CONTROLS),
            ProgramEdge(INPUT, loop, Payload.FIRST_FRAMES),
            ProgramEdge("prompt_encode", loop, Payload.FEATURES),
            ProgramEdge(loop, "decode", Payload.LATENTS),
            ProgramEdge("decode", "encode", Payload.FRAMES),
            ProgramEdge("encode", OUTPUT, Payload.PACKETS),
        ),
    )


def narrated(prompt_loop: str, every: int) -> Program:
    """A session of two loops: the second one writes a prompt in every `every` chunks, from what the first one made."""
    plain = realtime()
    writes = (
        ProgramEdge(CHUNK_ROLLOUT, prompt_loop, Payload.LATENTS, delay=1),
        ProgramEdge(prompt_loop, "prompt_encode", Payload.TEXT),
    )
    return Program("narrated", (*plain.nodes, LoopNode(prompt_loop, every=every)), (*plain.edges, *writes))


REALTIME = realtime()
