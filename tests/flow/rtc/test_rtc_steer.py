"""`drive` behind a real server: what a viewer decodes follows the keys and the words."""

import pytest
from worldroom.cli.bench.live_steer import measure_steering, words_of
from worldroom.clients.bench.server import serving
from worldroom.models.drive.card import WEIGHTS
from worldroom.models.shared.road.look import BIOMES, THEMES, TIMES, WEATHERS, theme_of
from worldroom.models.shared.road.text import load_text
from worldroom.training.drive.text import heard

TRIALS = 3


@pytest.mark.timeout(300)
async def test_keys_move_the_road_and_words_change_the_look_of_what_is_sent() -> None:
    with serving("drive") as base:
        report = await measure_steering(base, TRIALS, seed=0)
    assert report.right_side_24 >= 0.66, "the road lies further right under left in two worlds of three"
    assert report.reached >= 0.66, "time, biome and weather show within a second and a half of frames"
    assert 1 <= report.frames.min <= report.frames.max <= 36


def test_the_words_that_are_sent_mean_the_look_that_is_expected() -> None:
    encoder = load_text(WEIGHTS / "text.safetensors")
    for number in range(THEMES):
        theme = theme_of(number)
        expected = (TIMES[theme.time], BIOMES[theme.biome], WEATHERS[theme.weather])
        assert heard(encoder.look(words_of(theme))) == expected
