"""The toy: a world of small integers without weights, whose every step shows in the result."""
