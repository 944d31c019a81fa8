"""Where things lie on the user's machine: data that is kept, caches that may be deleted, settings."""

import os
from pathlib import Path

from .errors import fail


def data_dir() -> Path:
    """Where the embedded journal lives: $WORLDROOM_DATA, else the user's data folder."""
    return _chosen("WORLDROOM_DATA", "XDG_DATA_HOME", ".local/share")


def cache_dir() -> Path:
    """What may be deleted at any time: $WORLDROOM_CACHE, else the user's cache folder."""
    return _chosen("WORLDROOM_CACHE", "XDG_CACHE_HOME", ".cache")


def config_dir() -> Path:
    """Where `worldroom.toml` is looked for beside the current folder."""
    return _chosen("WORLDROOM_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")


def _chosen(own: str, shared: str, in_home: str) -> Path:
    """An empty variable counts as none, and the home is asked for only when it is needed: there may be none."""
    if configured := os.environ.get(own):
        return Path(configured)
    if (given := os.environ.get(shared)) and os.path.isabs(given):
        return Path(given) / "worldroom"
    try:
        return Path.home() / in_home / "worldroom"
    except RuntimeError:
        raise fail(f"this user has no home folder: set {own} or {shared} to a folder") from None
