"""Matrix-Game's checks, in each mode on random weights: passes and rollouts against the golden, the interleave gate."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from ..contract.cache import CacheView
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..parity.interleave import interleave_check
from ..parity.ladder import Pair, ParityCheck, ParityLevel
from ..parity.session import ChunkInput, ParitySession
from . import golden
from .actions import action
from .card import CONTROLS, matrix_game_card
from .load import random_networks
from .loop import MatrixGameLoop
from .runtime import MatrixGameRuntime
from .slab import Slab, Window
from .spec import MatrixGameSpec, Mode, tiny
from .transformer import Actions

SEED, CHUNKS = 5, 7
_SMALL = replace(tiny(), rows=4, columns=6)
_MODES = {
    Mode.UNIVERSAL: _SMALL,
    Mode.GTA: replace(_SMALL, mode=Mode.GTA, keys=2, local=4),
    Mode.TEMPLE_RUN: replace(_SMALL, mode=Mode.TEMPLE_RUN, keys=7),
}


def matrix_game_checks(spec: MatrixGameSpec) -> tuple[ParityCheck, ...]:
    """Checks run on random weights alone; published sizes have none here."""
    if not spec.random:
        return ()
    passes = ParityCheck(
        ParityLevel.C0, "transformer: cached pass, block by block, against one masked pass", 2e-5, _pass
    )
    rollouts = [
        ParityCheck(
            ParityLevel.C1,
            f"rollout, {mode}: {CHUNKS} chunks under a window of {made.local} frames",
            2e-5,
            _rollout(made),
        )
        for mode, made in _MODES.items()
    ]
    gate = interleave_check(matrix_game_card(spec), lambda: loaded(_SMALL), seeds=1, sessions=2, chunks=3)
    shared = interleave_check(matrix_game_card(spec), lambda: loaded(_SMALL, True), seeds=1, sessions=3, chunks=3)
    return (passes, *rollouts, gate, replace(shared, subject=f"{shared.subject}, rows share a pass"))


def loaded(spec: MatrixGameSpec, invariant: bool = False) -> LoadedCard:
    """The card on the CPU with random weights."""
    card, networks = matrix_game_card(spec), random_networks(spec)
    if invariant:
        networks.transformer.invariant()
    runtime = MatrixGameRuntime(spec, networks, card.frame, invariant)
    choice = replace(card.recipe.default, invariant=invariant)
    return LoadedCard(card, choice, "random", {CHUNK_ROLLOUT: MatrixGameLoop(spec)}, runtime)


def inputs(spec: MatrixGameSpec, chunks: int) -> list[ChunkInput]:
    """Every control once in turn, and a wandering pointer."""
    count = len(CONTROLS[spec.mode])
    made = []
    for chunk in range(chunks):
        controls = tuple(1.0 if i == chunk % (count + 1) else 0.0 for i in range(count))
        made.append(ChunkInput(controls, (0.02 * chunk, -0.01 * chunk), "a meadow"))
    return made


def _sizes(spec: MatrixGameSpec) -> golden.Sizes:
    return golden.Sizes(spec.heads, spec.action_heads, spec.local, spec.action_time_width, spec.rows, spec.columns)


@torch.no_grad()
def _pass() -> Iterator[Pair]:
    """Three chunks of drawn latents: each committed, the last one also asked at a noise level."""
    spec = _MODES[Mode.GTA]
    networks, sizes, rng = random_networks(spec), _sizes(spec), torch.Generator().manual_seed(3)
    x = torch.randn(spec.channels, 9, spec.rows, spec.columns, generator=rng)
    condition = torch.randn(spec.channels, 6, spec.rows, spec.columns, generator=rng)
    image = torch.randn(spec.image_tokens, spec.image_width, generator=rng)
    keys, mouse = torch.rand(33, spec.keys, generator=rng), torch.rand(33, 2, generator=rng)
    table = networks.transformer.state_dict()
    slab = Slab(spec, 1, torch.float32, torch.device("cpu"))
    for chunk in range(3):
        probes: dict[str, torch.Tensor] = {}
        first = 12 * chunk - 12
        rows = [max(first + i, 0) for i in range(21)]
        known = condition[:, [min(f, 5) for f in range(3 * chunk, 3 * chunk + 3)]]
        mask = torch.zeros(4, 3, spec.rows, spec.columns)
        mask[:, 0] = 1.0 if chunk == 0 else 0.0
        stack = torch.cat((x[:, 3 * chunk : 3 * chunk + 3], mask, known))
        given = (networks.transformer.image_kv([image]), Actions(keys[rows][None], mouse[rows][None]), [3 * chunk])
        view = CacheView(0, (1 - chunk % 2,) if chunk else (), chunk % 2)
        seen = Window(slab, [view], False)
        flow = networks.transformer(stack[None], [0.7], *given, seen, probe=probes.__setitem__)[0]
        whole = golden.whole(table, sizes, x[:, : 3 * chunk + 3], chunk, 0.7, condition, image, keys, mouse)
        for layer, (ours, reference) in enumerate(zip(probes.values(), whole[:-1], strict=True)):
            yield Pair(chunk, f"block {layer}", "features", ours.numpy(), reference.numpy())
        yield Pair(chunk, "head", "flow", flow.numpy(), whole[-1].numpy())
        networks.transformer(stack[None], [0.0], *given, Window(slab, [view], True))


def _rollout(spec: MatrixGameSpec) -> Callable[[], Iterator[Pair]]:
    """A check's body for one mode: a session through the loop and the slabs, and the golden from the same world."""

    @torch.no_grad()
    def run() -> Iterator[Pair]:
        card, given = loaded(spec), inputs(spec, CHUNKS)
        card.runtime.allocate(1)
        session = ParitySession(card, 0, SEED, given, card.runtime.encode_prompt)
        latents = [session.state.x_CFHW.numpy() for _ in session.run()]
        world = session.carry.world
        vectors = [action(spec.mode, one.controls, one.pointer) for one in given]
        keys = golden.held([k.tolist() for k, _ in vectors])
        mouse = golden.held([m.tolist() for _, m in vectors]) if spec.mouse else None
        table = random_networks(spec).transformer.state_dict()
        made = golden.rollout(table, _sizes(spec), world.condition_CKHW, world.image_IM, keys, mouse, SEED)
        for chunk, (ours, reference) in enumerate(zip(latents, made, strict=True)):
            yield Pair(chunk, "rollout", "latent", ours, reference.numpy())

    return run
