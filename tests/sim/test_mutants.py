"""Broken engines, each caught by the test that is named here: a gate that no mutant fails proves nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from worldroom.engine import cancel
from worldroom.engine.admission import admission, rules
from worldroom.engine.caches import slab_pool
from worldroom.models.contract.cache import CacheView
from worldroom.models.toy.runtime import ToyRuntime
from worldroom.tests.flow.engine.test_engine import (
    test_a_full_engine_refuses_with_figures_and_a_closed_session_makes_room as slots_are_reserved,
)
from worldroom.tests.flow.engine.test_engine import test_a_supersede_takes_effect_within_one_step as cancels_are_seen
from worldroom.tests.interleave.test_interleave import interleave as gate


def interleave() -> None:
    for seed in range(6):
        gate(4, seed)


def no_rollback(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slab_pool.CacheSlot, "rollback", slab_pool.CacheSlot.commit)


def key_without_session(patch: pytest.MonkeyPatch) -> None:
    view = slab_pool.CacheSlot.view
    patch.setattr(slab_pool.CacheSlot, "view", lambda self: CacheView(0, view(self).committed, view(self).staged))


def ignored_cancel(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cancel.CancelScope, "cancel", lambda self: None)


def batch_dependent_result(patch: pytest.MonkeyPatch) -> None:
    execute = ToyRuntime.execute

    def mixed(self: ToyRuntime, kind: Any, rows: Any, views: Any) -> Any:
        return execute(self, kind, [rows[0]] * len(rows), views)

    patch.setattr(ToyRuntime, "execute", mixed)


def unreserved_slot(patch: pytest.MonkeyPatch) -> None:
    refuse = rules.refuse

    def careless(need: rules.Demand, room: rules.Headroom) -> rules.Refusal | None:
        no = refuse(need, room)
        return None if no is not None and no.reason == "no_slot" else no

    patch.setattr(admission, "refuse", careless)


@pytest.mark.parametrize(
    ("mutant", "named"),
    [
        (no_rollback, interleave),
        (key_without_session, interleave),
        (ignored_cancel, cancels_are_seen),
        (batch_dependent_result, interleave),
        (unreserved_slot, slots_are_reserved),
    ],
    ids=["no rollback", "key without session", "ignored cancel", "batch-dependent result", "unreserved slot"],
)
def test_each_mutant_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], named: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, slab_pool.PoolFull)):
        named()
