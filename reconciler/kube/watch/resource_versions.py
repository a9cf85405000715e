"""resourceVersions of one cluster, compared: they count its writes, whatever the kind."""

from reconciler.model.parsers import natural


def is_newer(version: str, than: str) -> bool:
    """Whether it came later. What can't be compared is taken for news."""
    came, before = natural(version), natural(than)
    return came is None or before is None or came > before


def is_older(version: str, than: str) -> bool:
    """Whether it was true before."""
    came, before = natural(version), natural(than)
    return came is not None and before is not None and came < before
