"""How a conflict over fields is told: who set which, so that a person knows whom to ask."""

from collections.abc import Iterable


def conflict(fields: Iterable[tuple[str, str]]) -> str:
    """Of field managers, and the field that each set."""
    pairs = sorted(set(fields))
    owners = sorted({owner for owner, _ in pairs})
    each = (f"{owner} set {', '.join(field for by, field in pairs if by == owner)}" for owner in owners)
    return f"the field manager {'; '.join(each)} otherwise, and nothing is taken from another by force"
