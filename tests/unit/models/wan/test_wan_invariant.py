"""Rows that share a pass and keep the bits they have alone: what the form is made of, and steps of sixteen people.

Sizes are odd, so that no row ends where a vectorised loop or a tile does.
"""

from dataclasses import replace

import pytest
import torch
from torch import nn
from worldroom.kernels.invariant_matmul import invariant_linear
from worldroom.models import catalog
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.cache_key import key_of
from worldroom.models.contract.card import Parity
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import CHUNK_ROLLOUT, StepKind
from worldroom.models.contract.recipe import Precision, RecipeMismatch, RuntimeChoice
from worldroom.models.parity.session import ChunkInput, ParitySession
from worldroom.models.shared.fp8 import Fp8Linear, narrow
from worldroom.models.shared.invariant import EachRow, InvariantLinear, make_invariant
from worldroom.models.wan import random_weights
from worldroom.models.wan.card import SPECS, wan_card
from worldroom.models.wan.loop import WanLoop
from worldroom.models.wan.parity.rollout import twin
from worldroom.models.wan.rows import Sharing, WanResult, WanRow
from worldroom.models.wan.runtime import WanRuntime
from worldroom.models.wan.spec import WanShape

torch.set_num_threads(1)
PEOPLE = 16
ODD = WanShape(dim=60, heads=5, layers=2, ffn=130, text_dim=34, text_length=7, freq_dim=26, rows=6, columns=10)
INVARIANT = RuntimeChoice("renoise", 4, Precision.FP32, invariant=True)


def people_on(precision: Precision) -> tuple[WanRuntime, list[ParitySession]]:
    """Sixteen worlds, each at another chunk (0 to 3) and, in turn, at each of its denoise steps or at its commit."""
    spec = replace(twin(SPECS["wan-tiny-random"]), shape=ODD)
    dtype = torch.float32 if precision.full else torch.bfloat16
    networks, card = random_weights.networks(spec, dtype), wan_card(spec)
    if precision.narrow_weights:
        narrow(networks.transformer.blocks)
    runtime = WanRuntime(spec, networks, dtype, Sharing.INVARIANT, precision.narrow_kv)
    runtime.allocate(PEOPLE)
    made = LoadedCard(card, card.recipe.default, "random", {CHUNK_ROLLOUT: WanLoop(spec, card.recipe)}, runtime)
    inputs = [ChunkInput((), (0.0, 0.0), "a fox in snow")] * 4
    worlds = [ParitySession(made, slot, slot, inputs, runtime.encode_prompt) for slot in range(PEOPLE)]
    for number, session in enumerate(worlds):
        while len(session.outcomes) < number % 4:
            next(iter(session.run()))
        session.begin()
    return runtime, worlds


def due(worlds: list[ParitySession]) -> tuple[StepKind, list[WanRow], list[CacheView | None]]:
    plans = [session.plan for session in worlds if session.plan is not None]
    return plans[0].kind, [plan.row for plan in plans], [session.view() for session in worlds]


def advance(runtime: WanRuntime, worlds: list[ParitySession]) -> None:
    for session, result in zip(worlds, runtime.execute(*due(worlds)), strict=True):
        session.advance(result)


def same(ours: list[WanResult], theirs: list[WanResult]) -> bool:
    return all(torch.equal(a.x_CFHW, b.x_CFHW) for a, b in zip(ours, theirs, strict=True))  # type: ignore[union-attr]


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16, Precision.FP32_KV8, Precision.FP8_KV8])
def test_any_number_of_people_in_one_pass_have_the_bits_each_has_alone(precision: Precision) -> None:
    runtime, worlds = people_on(precision)
    for number, session in enumerate(worlds):
        for _ in range(number // 4):  # the first four begin, the next four have done a step, ..
            advance(runtime, [session])
    kind, rows, views = due(worlds)
    assert kind is StepKind.DENOISE
    alone = [runtime.execute(kind, [row], [view])[0] for row, view in zip(rows, views, strict=True)]
    passes: list[int] = []
    hook = runtime.networks.transformer.register_forward_pre_hook(lambda _, given: passes.append(len(given[0])))
    for count in range(1, PEOPLE + 1):
        assert same(runtime.execute(kind, rows[:count], views[:count]), alone[:count])
    hook.remove()
    assert passes == [*range(1, PEOPLE + 1)]


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16, Precision.FP32_KV8])
def test_commits_that_share_a_pass_write_the_bits_each_writes_alone(precision: Precision) -> None:
    runtime, worlds = people_on(precision)
    for _ in range(4):
        advance(runtime, worlds)
    kind, rows, views = due(worlds)
    assert kind is StepKind.COMMIT
    before = runtime.slab.values.clone()
    runtime.execute(kind, rows, views)
    together = runtime.slab.values.clone()
    runtime.slab.values.copy_(before)
    for row, view in zip(rows, views, strict=True):
        runtime.execute(kind, [row], [view])
    assert torch.equal(runtime.slab.values, together) and not torch.equal(before, together)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("tokens", "inputs", "outputs"), [(3, 26, 60), (45, 54, 37), (36, 48, 96), (1, 7, 5)])
def test_a_product_takes_every_row_by_itself(tokens: int, inputs: int, outputs: int, dtype: torch.dtype) -> None:
    """3 x 26 and 45 x 54 numbers end where memory is not aligned, which products of some libraries feel."""
    dice = torch.Generator().manual_seed(0)
    shapes = ((PEOPLE, tokens, inputs), (outputs, inputs), (outputs,))
    x, weight, bias = (torch.randn(shape, generator=dice).to(dtype) for shape in shapes)
    alone = torch.cat([invariant_linear(x[row : row + 1].clone(), weight, bias, x.shape[1]) for row in range(PEOPLE)])
    for count in range(1, PEOPLE + 1):
        assert torch.equal(invariant_linear(x[:count].clone(), weight, bias, x.shape[1]), alone[:count])
    torch.testing.assert_close(alone.float(), (x.float() @ weight.float().T + bias.float()), rtol=0.02, atol=0.05)


def test_an_activation_takes_every_row_by_itself() -> None:
    """45 x 130 is no whole number of vectors: the plain one gives some elements other bits where rows meet."""
    x = torch.randn(PEOPLE, 45, 130, generator=torch.Generator().manual_seed(0)) * 3
    activation = EachRow(nn.GELU(approximate="tanh"))
    assert torch.equal(activation(x), torch.cat([activation(x[row : row + 1]) for row in range(PEOPLE)]))
    torch.testing.assert_close(activation(x), nn.GELU(approximate="tanh")(x))


def test_every_layer_gets_its_form_and_keeps_its_weights_under_their_names() -> None:
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(34, 18), nn.GELU(), nn.Linear(18, 5, bias=False), nn.SiLU()), torch.randn(3, 7, 34)
    expected, weights = net(x), dict(net.named_parameters())
    assert make_invariant(net) == 4
    assert [type(layer) for layer in net] == [InvariantLinear, EachRow, InvariantLinear, EachRow]
    assert dict(net.named_parameters()) == weights
    torch.testing.assert_close(net(x), expected)
    eight_bits = Fp8Linear(nn.Linear(34, 18))
    torch.testing.assert_close(InvariantLinear(eight_bits)(x), eight_bits(x))


def test_a_card_in_the_invariant_form_owes_the_bits_and_says_so() -> None:
    card = catalog.load("wan-tiny-random", INVARIANT)
    assert card.card.parity == Parity(exact=True, tolerance=0.0)
    assert isinstance(card.runtime, WanRuntime) and card.runtime.sharing is Sharing.INVARIANT
    assert key_of(card).plan.endswith("invariant")
    plain = catalog.load("wan-tiny-random")
    assert isinstance(plain.runtime, WanRuntime) and plain.runtime.sharing is Sharing.ALONE
    assert key_of(plain).differences(key_of(card)) == ("plan",)


@pytest.mark.parametrize(
    ("card", "choice", "says"),
    [
        ("drive", RuntimeChoice("flow-x0", 1, Precision.FP32, invariant=True), "mode 'invariant': it allows plain"),
        (
            "self-forcing-1.3b",
            RuntimeChoice("renoise", 4, Precision.BF16, compiled=True, invariant=True),
            "mode 'compiled and invariant': it allows compiled, invariant",
        ),
    ],
)
def test_a_recipe_refuses_the_form_where_there_is_none(card: str, choice: RuntimeChoice, says: str) -> None:
    with pytest.raises(RecipeMismatch, match=says):
        catalog.card(card).recipe.check(choice)
    catalog.card("self-forcing-1.3b").recipe.check(RuntimeChoice("renoise", 4, Precision.BF16, invariant=True))
