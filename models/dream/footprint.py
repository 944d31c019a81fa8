"""Bytes and FLOPs of the dream card, counted by running it."""

from ..contract.footprint import Footprint
from ..counted import count
from .card import WEIGHTS
from .load import load_dream


def account() -> Footprint:
    """At the recipe's default choice on this machine; raises `WeightsError`."""
    return count(load_dream(WEIGHTS, None), WEIGHTS)
