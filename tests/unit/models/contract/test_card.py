"""A card is checked field by field when it is written: a fault names the field, long before a session starts."""

from dataclasses import replace
from typing import Any

import pytest
from worldroom.models import catalog
from worldroom.models.contract.card import Control, LoopSpec, Parity
from worldroom.models.contract.faults import CardFault
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.placement import (
    INPUT,
    ComponentNode,
    LoopNode,
    Payload,
    Placement,
    Program,
    ProgramEdge,
    realtime,
)
from worldroom.models.contract.recipe import RecipeMismatch

TOY = catalog.card("toy")
LOOP = TOY.loops[0]


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"suggestions": ()}, "suggestions", "a world starts with the first one, there is none"),
        ({"suggestions": ("a", "a")}, "suggestions", "each is a text of its own"),
        ({"suggestions": (" ",)}, "suggestions", "each is a text of its own"),
        ({"name": "Toy Story"}, "name", "small letters, digits"),
        ({"version": ""}, "version", "it is empty"),
        ({"title": " "}, "title", "it is empty"),
        ({"loops": ()}, "loops", "a card has at least one loop"),
        ({"loops": (LOOP, LOOP)}, "loops", "each has a name of its own"),
        ({"loops": (replace(LOOP, steps=()),)}, "loops", "a loop has steps"),
        ({"loops": (replace(LOOP, makes=Payload.TEXT),)}, "loops", "the first loop makes frames"),
        ({"loops": (LOOP, LoopSpec("second", (StepKind.TOKEN,)))}, "loops", "one more loop may make text"),
        ({"parity": Parity(True, 0.1)}, "parity", "exact means tolerance 0"),
        ({"parity": Parity(False, -1.0)}, "parity", "exact means tolerance 0"),
        ({"frame": replace(TOY.frame, fps=0)}, "frame", "sizes, rate and counts are 1 or more"),
        ({"frame": replace(TOY.frame, width=15, scale=1)}, "frame", "shown sizes are even"),
        ({"controls": (Control("a", ("KeyA",)), Control("b", ("KeyA",)))}, "controls", "a key presses one control"),
        ({"controls": (Control("a", ()), Control("a", ()))}, "controls", "each has a name of its own"),
        ({"players": 0}, "players", "1 to 8, not 0"),
        ({"cache": None}, "cache", "commit write a cache, the card has none"),
        ({"program": realtime(loop="other")}, "program", "its loops are ['other'], the card's ['chunk_rollout']"),
    ],
)
def test_case_72_a_field_that_cannot_be_right_is_named(changes: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(CardFault) as fault:
        replace(TOY, **changes)
    assert fault.value.field == field and says in str(fault.value)


def test_a_recipe_made_for_another_loop_is_refused_with_the_card() -> None:
    with pytest.raises(RecipeMismatch, match="does not allow loop 'chunk_rollout': it allows diffusion_denoise"):
        replace(TOY, recipe=replace(TOY.recipe, assumes_loop="diffusion_denoise"))


def test_what_goes_in_and_what_comes_out() -> None:
    text, controls, pictures = Payload.TEXT, Payload.CONTROLS, Payload.FIRST_FRAMES
    assert TOY.capabilities.takes == (text, controls)
    assert catalog.card("longlive-1.3b").capabilities.takes == (text, pictures)
    assert catalog.card("matrix-game-2-universal").capabilities.takes == (text, controls, pictures)
    assert {catalog.card(name).capabilities.gives for name in catalog.names()} == {(Payload.PACKETS,)}


@pytest.mark.parametrize(
    ("nodes", "edges", "says"),
    [
        ((LoopNode("a"), LoopNode("a")), (), "names are used once"),
        ((LoopNode(INPUT),), (), "names are used once and never 'input'"),
        ((LoopNode("a"),), (ProgramEdge("a", "b", Payload.TEXT),), "a -> b: nodes are ['a']"),
        ((LoopNode("a", every=0),), (), "a loop runs once in 1 or more chunks"),
        (
            (LoopNode("a"), LoopNode("b")),
            (ProgramEdge("a", "b", Payload.TEXT), ProgramEdge("b", "a", Payload.TEXT)),
            "a, b wait for each other",
        ),
    ],
)
def test_a_program_is_a_graph(nodes: tuple[LoopNode, ...], edges: tuple[ProgramEdge, ...], says: str) -> None:
    with pytest.raises(CardFault) as fault:
        Program("p", nodes, edges)
    assert says in str(fault.value)


def test_a_circle_of_older_results_is_no_circle() -> None:
    later = (ProgramEdge("a", "b", Payload.TEXT), ProgramEdge("b", "a", Payload.LATENTS, delay=1))
    Program("p", (LoopNode("a"), LoopNode("b")), later)


def test_a_step_runs_where_its_node_says() -> None:
    decode = ComponentNode("decode", Placement.AUX, (StepKind.DECODE,), "a")
    program = Program("p", (LoopNode("a"), LoopNode("b"), decode), ())
    assert program.where("a", StepKind.DECODE) is Placement.AUX
    assert program.where("b", StepKind.DECODE) is Placement.DEVICE
    assert program.where("a", StepKind.DENOISE) is Placement.DEVICE
    assert program.where("", StepKind.CACHE_IO) is Placement.DEVICE
