"""Where the lab's sources and what is built of them are found."""

import os
from pathlib import Path

from tests import folders

REPOSITORY = folders.REPOSITORY
MODULE = REPOSITORY / "tests" / "control_plane"


def cache_directory() -> Path:
    """The user's cache directory for the lab; RECONCILER_LAB_CACHE moves it."""
    chosen = os.environ.get("RECONCILER_LAB_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reconciler-lab"
