"""The quality report names what misses its mark; the judge's reading has the shapes it promises."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
import torch
from worldroom.models.shared.road.look import BIOMES
from worldroom.training.drive.journey import all_biomes
from worldroom.training.drive.judge import Judge
from worldroom.training.drive.probes import sharpness
from worldroom.training.drive.quality import QualityReport

GOOD = QualityReport(
    steps=1,
    road_present=0.99,
    road_present_last_tenth=0.99,
    road_frames=2000,
    road_present_long=0.985,
    steer_sign_12=0.98,
    steer_sign_24=1.0,
    braked_speed=1.2,
    braked_speed_simulator=0.6,
    look_time=0.97,
    look_biome=0.98,
    look_weather=0.96,
    look_after_cut=0.97,
    look_journey=0.99,
    sharpness=0.8,
    objects=0.7,
    frame_ms=9.0,
    world=None,
    judge={"road_found": "0.9968"},
)


def test_a_good_report_has_no_failures_and_is_json() -> None:
    assert GOOD.failures() == []
    assert json.loads(msgspec.json.encode(GOOD))["braked_speed"] == 1.2


def test_failures_name_the_figure_and_both_numbers() -> None:
    worse = msgspec.structs.replace(GOOD, road_present=0.9, braked_speed=5.0, road_present_long=None)
    assert worse.failures() == ["road present 0.900 is below 0.98", "speed after braking 5.00 is above 3.0"]


@pytest.mark.usefixtures("one_thread")
def test_the_judge_reads_three_attributes_off_each_picture() -> None:
    with torch.inference_mode():
        verdict = Judge()(torch.zeros(2, 3, 80, 128))
    assert verdict.attributes().shape == (2, 3)
    assert verdict.centre_NR.shape == (2, 3)


def test_sharpness_of_stripes_is_their_contrast() -> None:
    stripes = torch.tensor([-1.0, 1.0]).repeat(64).expand(1, 3, 80, 128)
    assert sharpness(stripes) == 255.0
    assert sharpness(torch.zeros(1, 3, 80, 128)) == 0.0


def test_a_journey_visits_every_biome() -> None:
    biomes = (all_biomes(10) // 3) % len(BIOMES)
    assert np.array_equal(np.bincount(biomes), np.full(len(BIOMES), 2))
