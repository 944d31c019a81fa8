"""What a person may set of the engine with `worldroom serve`: all that an `EngineSpec` has but what simulations set."""

from dataclasses import asdict

import pytest
from worldroom.cli.engine_options import EngineOptions
from worldroom.engine.spec import EngineSpec

OF_SIMULATIONS = {"seed", "policy", "checkpoint_rate"}


def test_no_option_is_the_specs_default() -> None:
    assert EngineOptions().spec(slots=4) == EngineSpec()


def test_every_field_can_be_set() -> None:
    options = EngineOptions(
        memory=64, share=0.5, max_rows=2, background_after=1.0, kbps=800, kbps_max=900, encoder_threads=1,
        suspend_after=5.0, checkpoint_every=2.0, checkpoint_chunks=7, worlds_memory=10, worlds_disk=20,
        prompts_memory=8, adapters_memory=9, patience=9.0, fps=8, weights_memory=11,
    )  # fmt: skip
    made, default = asdict(options.spec(slots=9)), asdict(EngineSpec())
    assert {name for name in default if made[name] == default[name]} == OF_SIMULATIONS
    assert (made["memory"], made["share_cap"], made["suspend_after"]) == (64 << 20, 0.5, 5.0)


def test_a_rate_above_the_ceiling_is_refused() -> None:
    with pytest.raises(ValueError, match="kbps <= kbps_max is needed, got 7000 and 6000"):
        EngineOptions(kbps=7000).spec(slots=1)
