"""Prompt memory: versions, cuts and blends counted in frames."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from worldroom.sessions.messages import Transition, WeighedText
from worldroom.sessions.session.prompt_versions import PromptsRecord, PromptVersion, Wanted
from worldroom.sessions.session.prompts import SHARES_MAX, PromptMemory

CUT, BLEND = Transition.CUT, Transition.BLEND


def mix(memory: PromptMemory, frames: int = 1) -> dict[str, float]:
    return {share.key: round(share.weight, 6) for share in memory.take(frames)}


def turned(memory: PromptMemory, text: str, transition: Transition, seconds: float, fps: int = 8) -> None:
    version = memory.ask(text, transition, round(seconds * fps))
    memory.encoded(version.number, f"key of {text}")


def test_without_a_prompt_the_mix_is_empty() -> None:
    assert PromptMemory().take(1) == ()


def test_the_first_prompt_is_there_at_once() -> None:
    memory = PromptMemory()
    turned(memory, "snow", BLEND, 0.5)
    assert mix(memory) == {"key of snow": 1.0}


def test_a_cut_happens_at_the_next_chunk() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    turned(memory, "desert", CUT, 5.0)
    assert mix(memory) == {"key of desert": 1.0}
    assert memory.number == 2


def test_half_a_second_at_8_fps_blends_over_four_frames() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    turned(memory, "desert", BLEND, 0.5)
    assert [mix(memory).get("key of desert") for _ in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert mix(memory) == {"key of desert": 1.0}


def test_a_chunk_of_three_frames_moves_the_blend_by_three_frames() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    turned(memory, "desert", BLEND, 0.5)
    assert [mix(memory, frames=3)["key of desert"] for _ in range(2)] == [0.75, 1.0]


def test_a_prompt_during_a_blend_starts_from_the_current_mix() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    turned(memory, "desert", BLEND, 0.5)
    assert [mix(memory), mix(memory)][-1] == {"key of snow": 0.5, "key of desert": 0.5}
    turned(memory, "night", BLEND, 1.0)
    assert mix(memory) == {"key of snow": 0.4375, "key of desert": 0.4375, "key of night": 0.125}


def test_going_back_during_a_blend_merges_the_shares_of_one_prompt() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    turned(memory, "desert", BLEND, 0.5)
    mix(memory)
    turned(memory, "snow", BLEND, 0.5)
    assert mix(memory) == {"key of snow": 0.8125, "key of desert": 0.1875}


def test_a_world_that_starts_anew_has_the_whole_prompt() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    turned(memory, "desert", BLEND, 5.0)
    mix(memory)
    memory.settle()
    assert mix(memory) == {"key of desert": 1.0}


def test_an_older_version_encoded_late_does_not_turn_the_world_back() -> None:
    memory = PromptMemory()
    first, second = memory.ask("snow", CUT, 0), memory.ask("desert", CUT, 0)
    assert memory.encoded(second.number, "d") is not None
    assert memory.encoded(first.number, "s") is None
    assert mix(memory) == {"d": 1.0}


def test_a_version_that_cannot_be_encoded_changes_nothing() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    failed = memory.ask("???", BLEND, 12)
    assert memory.failed(failed.number) is not None
    assert (memory.first_waits, mix(memory)) == (False, {"key of snow": 1.0})


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 2), st.integers(0, 5)), max_size=12))
def test_weights_sum_to_one_and_shares_stay_few(asks: list[tuple[str, float, int]]) -> None:
    memory = PromptMemory()
    for text, seconds, chunks in asks:
        turned(memory, text, BLEND, seconds, fps=24)
        for _ in range(chunks):
            shares = memory.take(2)
            assert abs(sum(share.weight for share in shares) - 1.0) < 1e-9
            assert len(shares) <= SHARES_MAX


def test_what_is_put_aside_of_a_memory_that_waits_for_nothing_more() -> None:
    memory = PromptMemory()
    turned(memory, "day", CUT, 0)
    memory.ask("night", CUT, 0)
    assert msgspec.json.encode(memory.record()) == (
        b'{"versions":[{"number":1,"text":"day","transition":"cut","frames":0,"key":"key of day"}],'
        b'"start":{},"played":0,"last":2}'
    )


def test_a_recorded_memory_goes_on_in_the_middle_of_a_blend() -> None:
    memory = PromptMemory()
    for text, key in (("day", "d"), ("night", "n")):
        memory.encoded(memory.ask(text, Transition.BLEND, 10).number, key)
    memory.take(4)
    again = PromptMemory()
    again.restore(memory.record())
    assert again.take(1) == memory.take(1)
    assert again.ask("dusk", Transition.CUT, 0).number == memory.ask("dusk", Transition.CUT, 0).number == 3
    assert again.versions() == memory.versions()


def asked(memory: PromptMemory, text: str, wanted: Wanted, frames: int = 0) -> PromptVersion:
    """A version all of whose texts are encoded, the first one last."""
    version = memory.ask(text, BLEND, frames, wanted=wanted)
    for part in (*version.parts, version):
        memory.encoded(part.number, f"key of {part.text}")
    return version


def test_a_mix_has_its_weights_against_each_other_once_every_text_is_encoded() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    mixed = memory.ask("desert", BLEND, 2, wanted=Wanted(1.0, (WeighedText("night", 2.0), WeighedText("rain", 1.0))))
    assert memory.encoded(mixed.number, "d") is None
    assert memory.encoded(mixed.parts[1].number, "r") is None
    assert mix(memory) == {"key of snow": 1.0}
    assert memory.encoded(mixed.parts[0].number, "n") is not None
    assert mix(memory) == {"key of snow": 0.5, "d": 0.125, "n": 0.25, "r": 0.125}
    assert mix(memory) == {"d": 0.25, "n": 0.5, "r": 0.25}


def test_a_mix_of_which_one_text_cannot_be_encoded_changes_nothing() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    mixed = memory.ask("desert", CUT, 0, wanted=Wanted(1.0, (WeighedText("???"),)))
    failed = memory.failed(mixed.parts[0].number)
    assert failed is not None and failed.number == mixed.number
    assert memory.encoded(mixed.number, "d") is None
    assert mix(memory) == {"key of snow": 1.0}


def test_a_prompt_waits_for_its_chunk_and_one_asked_before_is_overtaken() -> None:
    memory = PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    asked(memory, "desert", Wanted(at=8))
    second = asked(memory, "night", Wanted(at=5))
    assert memory.due(4) is None
    assert memory.due(5) is not None
    assert (memory.number, mix(memory)) == (second.number, {"key of night": 1.0})
    assert memory.due(8) is None


def test_a_recorded_memory_keeps_what_waits_for_its_chunk() -> None:
    memory, again = PromptMemory(), PromptMemory()
    turned(memory, "snow", CUT, 0.0)
    asked(memory, "desert", Wanted(1.0, (WeighedText("night", 3.0),), at=9), frames=2)
    again.restore(msgspec.json.decode(msgspec.json.encode(memory.record()), type=PromptsRecord))
    assert again.due(9) == memory.due(9) is not None
    assert [again.take(1), again.take(1)] == [memory.take(1), memory.take(1)]
    assert mix(again) == {"key of desert": 0.25, "key of night": 0.75}
    assert again.ask("dusk", CUT, 0).number == 4
