"""Worlds as environments of Gymnasium: `gymnasium.make("worldroom/Drive-v0")`, one or many at once."""

from .register import register

register()
