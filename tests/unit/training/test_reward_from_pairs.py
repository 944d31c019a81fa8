"""A reward model learns a known rule from pairs, and nothing from shuffled ones."""

from dataclasses import replace

import numpy as np
from worldroom.training.examples.reward_from_pairs import synthetic, train


def test_held_out_pairs_of_a_known_rule_are_told_apart() -> None:
    _, accuracy = train(synthetic(2000))
    assert accuracy >= 0.85


def test_shuffled_answers_teach_nothing() -> None:
    pairs, rng = synthetic(2000), np.random.default_rng(1)
    labels = rng.permutation([pair.label for pair in pairs])
    _, accuracy = train([replace(pair, label=float(label)) for pair, label in zip(pairs, labels, strict=True)])
    assert accuracy < 0.6
