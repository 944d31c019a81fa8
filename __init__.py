"""Worldroom: a realtime session server for interactive video and world models.

The repository root is this package; docs/ARCHITECTURE.md is the map of its folders.
"""

__version__ = "0.1.0"
