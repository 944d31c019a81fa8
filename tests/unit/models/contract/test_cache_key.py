"""Every field of a cache key counts: what was kept under another key is never served, by any cache there is."""

from dataclasses import replace

import msgspec
import pytest
import torch
from worldroom.engine.caches import snapshot
from worldroom.engine.caches.feature_cache import FeatureCache
from worldroom.models.contract.cache_key import CacheKey, content_of, key_of
from worldroom.models.contract.conditions import AdapterShare, Conditions, PromptShare
from worldroom.models.contract.intercept import Intercepted, step_key
from worldroom.models.contract.loop import Ask, StepKind
from worldroom.models.contract.version import SOFTWARE
from worldroom.models.shared import compiled
from worldroom.tests.fake_engine import toy

KEY = CacheKey(
    card="drive@1",
    component="prompt",
    weights="abc",
    adapters=("snow*0.5",),
    precision="fp32",
    plan="drive-1 exact",
    shape=((1, 64, 96),),
    layout="rgb ring 9",
    sampler="flow",
    guidance="batched 6.0",
    seed=3,
    inputs=(content_of("snow"),),
    step="2 steps",
)
OTHER: dict[str, object] = {
    "card": "drive@2",
    "component": "look",
    "weights": "abd",
    "adapters": ("snow*0.25",),
    "precision": "bf16",
    "plan": "drive-1 inexact",
    "shape": ((1, 96, 64),),
    "layout": "i420 ring 9",
    "sampler": "euler",
    "guidance": "batched 5.0",
    "seed": 4,
    "inputs": (content_of("rain"),),
    "step": "3 steps",
    "contract": KEY.contract + 1,
}


def changed(field: str) -> CacheKey:
    return msgspec.structs.replace(KEY, **{field: OTHER[field]})


def test_the_table_names_every_field() -> None:
    assert set(OTHER) == set(KEY.__struct_fields__)


@pytest.mark.parametrize("field", OTHER)
def test_nothing_kept_under_another_key_is_served(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = changed(field)
    assert KEY.differences(other) == (field,)

    features = FeatureCache(entries_max=10, bytes_max=10)
    features.put(KEY.digest, "stale", 1)
    assert features.retain(KEY.digest)
    assert not features.retain(other.digest)

    forms: list[object] = []
    monkeypatch.setattr(torch, "compile", lambda function, **how: forms.append(function) or function)
    cache = compiled.CompileCache(KEY, 1e-3)
    for key in (KEY, KEY, other):
        cache.call(key, lambda x: (x,), (torch.ones(2),))
    assert len(forms) == 2, "the first form serves the second call and not the third"

    loaded = toy()
    ours = snapshot.maker(loaded)
    theirs = msgspec.structs.replace(ours, **{field: OTHER[field]})
    kept = snapshot.Snapshot(theirs, 2, 1, 0, 3, 0, None, 0, (), (), None, software=SOFTWARE)
    with pytest.raises(snapshot.SnapshotMismatch, match=f"a snapshot of {field} "):
        kept.check(loaded)


def ask(key: str = "snow", weight: float = 1.0, steps: int = 2, seed: int = 1, adapter: float = 1.0) -> Ask[object]:
    conditions = Conditions(
        0, (), (0.0, 0.0), (PromptShare(key, weight),), 1, 0, adapters=(AdapterShare("film", adapter),)
    )
    return Ask(seed, 0, 5, steps, conditions, (), None, 5)


def test_what_a_step_cache_learnt_under_other_conditions_is_forgotten() -> None:
    made_by = key_of(toy())
    asks = [ask(), ask(key="rain"), ask(weight=0.5), ask(steps=3), ask(seed=2), ask(adapter=0.5)]
    keys = [step_key(made_by, each).digest for each in asks]
    keys += [step_key(msgspec.structs.replace(made_by, **{field: OTHER[field]}), ask()).digest for field in _OF_CARD]
    assert len(set(keys)) == len(keys)
    later = replace(ask(), chunk=6, carry=Intercepted)
    assert step_key(made_by, later).digest == keys[0], "the next chunk under the same conditions goes on with it"


_OF_CARD = ("card", "weights", "precision", "plan", "shape", "layout", "sampler", "guidance", "contract")


def test_the_key_of_a_card_says_how_it_runs_and_of_a_part_what_went_in() -> None:
    key = key_of(toy())
    assert (key.card, key.sampler, key.precision) == ("toy@1", "integer", "int")
    part = key.part("prompt", inputs=("a",), step=StepKind.PROMPT_ENCODE)
    assert part.differences(key) == ("component", "inputs", "step")
    assert part.digest != key.digest
