"""C1 of the Wan cards: whole rollouts, step by step on a small twin, against whole-sequence masked forwards.

The twin has the card's plan with tiny sizes and random weights. Latents are compared after every chunk, and so is every
bit of the sink. Each generator yields its probes in order.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...contract.loaded import LoadedCard
from ...contract.recipe import Precision, RuntimeChoice
from ...parity.ladder import Pair, ParityMissing
from ...parity.session import ChunkInput, ParitySession
from .. import random_weights
from ..card import EULER, TINY_VAE, UNIPC, wan_card
from ..clips.loop import ClipLoop
from ..loop import WanCarry, WanLoop
from ..rows import Policy, Sharing
from ..runtime import WanRuntime
from ..spec import Clip, Positions, Rollout, WanShape, WanSpec
from . import golden

SEED = 7
SMALL = WanShape(dim=48, heads=4, layers=2, ffn=96, text_dim=32, text_length=8, freq_dim=32, rows=4, columns=4)
TWO_PROMPTS = ("a red fox trots through snow", "a lighthouse in a storm at night")


def reference(name: str) -> Callable[..., Any]:
    """One of diffusers' classes; raises `ParityMissing`."""
    try:
        made: Callable[..., Any] = getattr(importlib.import_module("diffusers"), name)
    except ImportError as error:
        raise ParityMissing("the extra 'diffusers' is not installed") from error
    return made


def twin(spec: WanSpec) -> WanSpec:
    """The same plan, small and drawn."""
    plan = replace(spec.plan, frames=3, steps=(8, 4)) if isinstance(spec.plan, Clip) else spec.plan
    return replace(spec, shape=SMALL, vae=TINY_VAE, tiny_widths=(8, 8, 8, 8), plan=plan, random=True, lora_rank=0)


def replaced(spec: WanSpec, recache: bool) -> WanSpec:
    return replace(spec, plan=replace(spec.rollout, recache=recache))


def loaded(
    spec: WanSpec, sharing: Sharing = Sharing.ALONE, policy: Policy = Policy.BATCHED, sampler: str | None = None
) -> LoadedCard:
    card = wan_card(spec)
    choice = RuntimeChoice(sampler or card.recipe.sampler, card.recipe.default.steps, Precision.FP32)
    clips = isinstance(spec.plan, Clip)
    loop = ClipLoop(spec, card.recipe, policy, choice.sampler) if clips else WanLoop(spec, card.recipe)
    runtime = WanRuntime(spec, random_weights.networks(spec, torch.float32), torch.float32, sharing)
    return LoadedCard(card, choice, "random", {card.main_loop: loop}, runtime)


def rollout(spec: WanSpec, chunks: int, switch: str) -> Iterator[Pair]:
    """Prompts change a third of the way in: at once, over three chunks, or with a rebuilt cache."""
    made, at, (before, after) = loaded(spec), chunks // 3 + 1, TWO_PROMPTS
    runtime = _runtime(made)
    runtime.allocate(1)
    inputs = []
    for chunk in range(chunks):
        share = min(max((chunk - at + 1) / 3, 0.0), 1.0) if switch == "blend" else float(chunk >= at)
        mix = ((before, 1.0 - share), (after, share)) if 0 < share < 1 else ((after if share else before, 1.0),)
        inputs.append(ChunkInput((), (0.0, 0.0), "", recache=switch == "recache" and chunk == at, mix=mix))
    session = ParitySession(made, 0, SEED, inputs, runtime.encode_prompt)
    world = _golden_world(spec, runtime)
    sink: dict[int, Tensor] = {}
    for chunk, (_, given) in enumerate(zip(session.run(), inputs, strict=True)):
        texts = [runtime.encode_prompt(words).double() * weight for words, weight in given.shares]
        text = torch.stack(texts).sum(0)
        if given.recache:
            world.recache(text, spec.rollout.recache_frames // spec.rollout.chunk)
        expected = world.chunk(text)
        yield Pair(chunk, "rollout", "latent", session.state.x_CFHW.numpy(), expected.numpy())
        for entry in session.committed[: spec.rollout.sink_chunks]:
            kept = runtime.slab.values[0, entry]
            first = sink.setdefault(entry, kept.clone())
            yield Pair(chunk, "sink", "bits moved", np.array(int((kept != first).sum())), np.array(0))


def context_rollout(spec: WanSpec) -> Iterator[Pair]:
    """Krea: each chunk sees only the context, passed anew at noise 0; later ones start with a re-encoded picture."""
    made, plan, chunks = loaded(spec), spec.rollout, 9
    runtime = _runtime(made)
    runtime.allocate(1)
    inputs = [ChunkInput((), (0.0, 0.0), TWO_PROMPTS[chunk > 4]) for chunk in range(chunks)]
    session = ParitySession(made, 0, SEED, inputs, runtime.encode_prompt)
    net, shape = _net(runtime, spec), (spec.shape.channels, plan.chunk, spec.shape.rows, spec.shape.columns)
    carry: WanCarry | None = None
    for chunk, (outcome, given) in enumerate(zip(session.run(), inputs, strict=True)):
        text = runtime.encode_prompt(given.prompt).double()
        context: list[golden.Segment] = []
        if carry is not None and carry.clean_CFHW is not None:
            clean = carry.clean_CFHW.double()
            if chunk > 1 and carry.edge_3HW is not None:
                first = runtime.networks.vae.encode(carry.edge_3HW[None, :, None])[0].double()
                clean = torch.cat((first, clean[:, 1:]), 1)
            context = [golden.Segment(clean, 0.0, text, 0, ())]
        x = golden.noise(SEED, chunk, 0, shape)
        for step, sigma in enumerate(plan.sigmas):
            now = golden.Segment(x, sigma, text, plan.context if context else 0, (0,) if context else ())
            x0 = x - sigma * golden.velocity(net, [*context, now])
            if step + 1 < len(plan.sigmas):
                level = plan.sigmas[step + 1]
                x = (1 - level) * x0 + level * golden.noise(SEED, chunk, step + 1, shape)
        carry = outcome.carry
        yield Pair(chunk, "rollout", "latent", session.state.x_CFHW.numpy(), x0.numpy())


def unipc_clip(spec: WanSpec) -> Iterator[Pair]:
    """Diffusers' scheduler around the golden's velocities, told whole timesteps as its pipeline tells them."""
    made, plan, words = loaded(spec, policy=Policy.NONE, sampler=UNIPC), spec.clip, TWO_PROMPTS[0]
    runtime = _runtime(made)
    session = ParitySession(made, 0, SEED, [ChunkInput((), (0.0, 0.0), words)], runtime.encode_prompt)
    net, shape = _net(runtime, spec), (spec.shape.channels, plan.frames, spec.shape.rows, spec.shape.columns)
    scheduler = reference("UniPCMultistepScheduler")(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=plan.shift
    )
    scheduler.set_timesteps(made.choice.steps)
    text, x = runtime.encode_prompt(words).double(), golden.noise(SEED, 0, 0, shape)
    for timestep in scheduler.timesteps:
        velocity = golden.velocity(net, [golden.Segment(x, float(timestep) / 1000, text, 0, ())])
        x = scheduler.step(velocity[None], timestep, x[None]).prev_sample[0]
    for _ in session.run():
        yield Pair(0, "clip", "latent", session.state.x_CFHW.numpy(), x.numpy())


def clip(spec: WanSpec, policy: Policy) -> Iterator[Pair]:
    """Euler steps along the guided velocity, written out."""
    made, plan, words = loaded(spec, policy=policy, sampler=EULER), spec.clip, TWO_PROMPTS[0]
    runtime = _runtime(made)
    inputs = [ChunkInput((), (0.0, 0.0), words)] * 2
    session = ParitySession(made, 0, SEED, inputs, runtime.encode_prompt)
    net, shape = _net(runtime, spec), (spec.shape.channels, plan.frames, spec.shape.rows, spec.shape.columns)
    text, empty = runtime.encode_prompt(words).double(), runtime.encode_prompt("").double()
    sigmas = (*made.card.recipe.levels(made.choice.steps), 0.0)
    for chunk, _ in enumerate(session.run()):
        x = golden.noise(SEED, chunk, 0, shape)
        for step in range(len(sigmas) - 1):
            v = golden.velocity(net, [golden.Segment(x, sigmas[step], text, 0, ())])
            if policy is not Policy.NONE:
                u = golden.velocity(net, [golden.Segment(x, sigmas[step], empty, 0, ())])
                if policy is Policy.CFG_ZERO:
                    u = u * float((v * u).sum() / (u * u).sum())
                v = u + plan.guidance * (v - u)
            if policy is not Policy.CFG_ZERO or step > 0:
                x = x + (sigmas[step + 1] - sigmas[step]) * v
        yield Pair(chunk, "clip", "latent", session.state.x_CFHW.numpy(), x.numpy())


def _golden_world(spec: WanSpec, runtime: WanRuntime) -> golden.World:
    plan, s = spec.rollout, spec.shape
    shape = (s.channels, plan.chunk, s.rows, s.columns)
    return golden.World(_net(runtime, spec), SEED, shape, plan.sigmas, plan.past_chunks, plan.sink_chunks)


def _net(runtime: WanRuntime, spec: WanSpec) -> golden.Net:
    table = {name: value.double() for name, value in runtime.networks.transformer.state_dict().items()}
    restart = isinstance(spec.plan, Rollout) and spec.plan.positions is Positions.WINDOW
    return golden.Net(table, spec.shape.heads, restart)


def _runtime(made: LoadedCard) -> WanRuntime:
    if not isinstance(made.runtime, WanRuntime):
        raise TypeError(f"a Wan card runs on a {type(made.runtime).__name__}")
    return made.runtime
