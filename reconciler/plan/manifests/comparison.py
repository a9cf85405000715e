"""What applying a manifest would change: fields, the object as it would then stand, and what is in the way."""

from typing import Any

import msgspec


class ManifestFieldChange(msgspec.Struct, frozen=True):
    """A field, and what it is and would be: JSON, or None where nothing is said."""

    path: str  # spec.limits.cpu
    before: str | None
    after: str | None


class Foreign(msgspec.Struct, frozen=True, order=True):
    """A field that would be changed although another manager set it to what it is: the API server would refuse."""

    path: str
    manager: str
    shared: bool = False  # we set it too, to the same


class Comparison(msgspec.Struct, frozen=True):
    """What an apply would do; `merged` is the object as it would then stand."""

    changes: tuple[ManifestFieldChange, ...]
    merged: dict[str, Any]
    foreign: tuple[Foreign, ...]

    @property
    def spec(self) -> dict[str, Any]:
        """The spec as it would then stand."""
        found = self.merged.get("spec")
        return found if isinstance(found, dict) else {}

    @property
    def paths(self) -> tuple[str, ...]:
        """What changes."""
        return tuple(each.path for each in self.changes)

    @property
    def managers(self) -> tuple[str, ...]:
        """Who is in the way."""
        return tuple(sorted({each.manager for each in self.foreign}))

    @property
    def contested(self) -> tuple[str, ...]:
        """The fields of which others are in the way."""
        return tuple(sorted({each.path for each in self.foreign}))
