"""Waypoint's checks on the tiny card: its own rollout against the golden. Published weights are not matched."""

import random
from collections.abc import Iterator
from dataclasses import replace

import torch

from ..contract.loaded import LoadedCard
from ..parity.interleave import interleave_check, made_up_inputs
from ..parity.ladder import Pair, ParityCheck, ParityLevel
from ..parity.session import ParitySession
from . import golden
from .card import waypoint_card
from .controls import control_vector
from .load import load, random_networks
from .spec import WaypointSpec

SEED, FRAMES = 9, 21


def waypoint_checks(spec: WaypointSpec) -> tuple[ParityCheck, ...]:
    """21 frames: three and more local windows of 3, two and more global spans of 8."""
    if not spec.random:
        return ()
    card = waypoint_card(spec)

    def loaded(invariant: bool = False) -> LoadedCard:
        return load(spec, card, replace(card.recipe.default, invariant=invariant), None)

    subject = f"rollout: {FRAMES} frames, a prompt switch, local and dilated layers, against the golden"
    gate = interleave_check(card, lambda: loaded(invariant=True), seeds=1, sessions=3, chunks=12)
    return (
        ParityCheck(ParityLevel.C1, subject, 2e-5, lambda: _rollout(spec, loaded())),
        interleave_check(card, loaded, seeds=1, sessions=3, chunks=12),
        replace(gate, subject=f"{gate.subject}, rows share a pass"),
    )


@torch.no_grad()
def _rollout(spec: WaypointSpec, loaded: LoadedCard) -> Iterator[Pair]:
    loaded.runtime.allocate(1)
    inputs = made_up_inputs(loaded, FRAMES, random.Random(2))
    session = ParitySession(loaded, 0, SEED, inputs, loaded.runtime.encode_prompt)
    latents = [session.state.x_TC.numpy() for _ in session.run()]
    sizes = golden.Sizes(
        heads=spec.heads,
        kv_heads=spec.kv_heads,
        rows=spec.rows,
        columns=spec.columns,
        local=spec.local,
        distant=spec.distant,
        dilation=spec.dilation,
        global_every=spec.global_every,
    )
    controls = [torch.from_numpy(control_vector(given.controls, given.pointer)) for given in inputs]
    prompts = [torch.as_tensor(loaded.runtime.encode_prompt(given.prompt)) for given in inputs]
    made = golden.rollout(random_networks(spec).transformer.state_dict(), sizes, controls, prompts, SEED)
    for frame, (ours, reference) in enumerate(zip(latents, made, strict=True)):
        yield Pair(frame, "rollout", "latent", ours, reference.numpy())
